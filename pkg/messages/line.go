package messages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxLineErrors bounds the errors that are kept of a document that is split.
const MaxLineErrors = 20

// Lines counts what became of the lines of a document that is split, each a document of its own.
type Lines struct {
	Total      int `json:"total"`      // that are not empty, as far as they were read
	Accepted   int `json:"accepted"`   // new or changed
	Unchanged  int `json:"unchanged"`  // nothing differed, or metadata alone
	Superseded int `json:"superseded"` // something newer had been submitted under their ids
	Failed     int `json:"failed"`     // could not be read, or ended Failed
	// Errors holds the first MaxLineErrors of the failed ones in order of lines.
	Errors []LineError `json:"errors,omitempty"`
}

// LineError tells why a line failed.
type LineError struct {
	Line  int    `json:"line"`            // number in the file, from 1
	DocID string `json:"docId,omitempty"` // empty where the line does not tell
	Error Error  `json:"error"`
}

// Fail counts a failed line.
func (l *Lines) Fail(e LineError) {
	l.Failed++
	if len(l.Errors) < MaxLineErrors {
		e.Error.Field, e.Error.Message = withoutNUL(e.Error.Field), withoutNUL(e.Error.Message)
		l.Errors = append(l.Errors, e)
	}
}

// withoutNUL is text as JSON in a database may hold it: errors repeat names out of lines.
func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// Late counts failed lines, of which some are told, that were counted as taken in before.
func (l *Lines) Late(some []LineError, failed int) {
	l.Failed += failed
	unchanged := max(failed-l.Accepted, 0)
	l.Accepted -= failed - unchanged
	l.Unchanged = max(l.Unchanged-unchanged, 0)
	l.Errors = append(l.Errors, some...)
	slices.SortStableFunc(l.Errors, func(a, b LineError) int { return cmp.Compare(a.Line, b.Line) })
	l.Errors = l.Errors[:min(len(l.Errors), MaxLineErrors)]
}

// Failure is the error of a document of which no line is left: that of its first line.
func (l *Lines) Failure() *Error {
	if len(l.Errors) == 0 {
		return Errorf(CodeEmptyDocument, "the file has no line that is not empty")
	}
	first := l.Errors[0]
	return &Error{
		Code: first.Error.Code, Field: first.Error.Field,
		Message: fmt.Sprintf("all of the %d lines failed; line %d: %s", l.Total, first.Line, first.Error.Message),
	}
}

// DecodeLine reads a line of a file that is split: the JSON body of a submit, or, where it holds neither text nor
// data, any other object, which is then a document of type application/json itself. Without an id of its own it gets
// the one given. The submit is returned along with an error where the line tells its id. Errors are those of
// DecodeSubmit; a line cannot refer to an upload.
func DecodeLine(line []byte, id string) (*Submit, error) {
	if !utf8.Valid(line) {
		return nil, &Error{Code: CodeInvalidEncoding, Field: "body", Message: "is not valid UTF-8"}
	}
	fields, strict := lineFields(line)
	if fields == nil {
		return nil, Invalid("body", "is not a JSON object")
	}
	own := firstID(fields)
	s := &Submit{DocID: own}
	if own == "" {
		s.DocID = id
	}
	if fields["upload"] != nil {
		return s, Invalid("upload", "a line cannot refer to an upload")
	}
	if fields["text"] == nil && fields["data"] == nil {
		if !strict {
			if err := scanJSON("body", line); err != nil {
				return s, err
			}
		}
		text := string(line)
		s.Text, s.ContentType = &text, "application/json"
		return s, s.Validate()
	}
	read := new(Submit)
	if err := decodeIngest(line, read); err != nil {
		return s, err
	}
	if own == "" && read.OSSKey != "" {
		s.DocID = IDFromOSSKey(read.Subspace, read.OSSKey)
	}
	read.DocID, read.ID = s.DocID, ""
	return read, read.Validate()
}

// lineFields returns the fields of a line of valid UTF-8, nil where it is no object, and whether it was read strictly.
func lineFields(line []byte) (fields map[string]json.RawMessage, strict bool) {
	r, fields := reader{data: line}, map[string]json.RawMessage{}
	if r.members(func(key []byte) bool {
		value, ok := r.skip()
		fields[string(key)] = value
		return ok
	}) && r.end() {
		return fields, true
	}
	fields = nil
	if json.Unmarshal(line, &fields) != nil {
		return nil, false
	}
	return fields, false
}

// firstID is the id in the fields of a line, empty where there is none.
func firstID(fields map[string]json.RawMessage) string {
	for _, name := range []string{"docId", "_id"} {
		var id string
		if raw := bytes.TrimSpace(fields[name]); len(raw) > 0 && json.Unmarshal(raw, &id) == nil && id != "" {
			return id
		}
	}
	return ""
}

// LineID is the id of a line that has none of its own.
func LineID(docID string, line int) string { return fmt.Sprintf("%s#%d", docID, line) }
