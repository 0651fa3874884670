package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// isLines reports whether an upload is split into its lines: by what it is declared as, else by its name.
func isLines(contentType string, names ...string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && slices.Contains([]string{"application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/ndjson"}, media):
		return true
	case contentType != "" && media != "application/octet-stream":
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(path.Ext(name)))
	})
}

// Parent is the version that lines belong to.
type Parent struct {
	Ref messages.Ref
	pgstore.Split
}

// Line is a line of a file that is split.
type Line struct {
	Number int // from 1
	Text   []byte
}

// LineVerdict is what became of a line.
type LineVerdict struct {
	Subspace, DocID string // empty where the line does not tell
	Outcome         pgstore.Outcome
	Err             *messages.Error // why it was refused; nil: it was not
	Messages        []bus.Message   // to be published
}

// TakeLines takes lines in, each as a submit of its own that is ordered as its file is. Run again with the same
// lines it gives the same verdicts. A line that is refused fails no other. Of two lines with the same id the later counts.
// ErrStale when the version is not being worked on any more.
func (in *Intake) TakeLines(ctx context.Context, p Parent, lines []Line) ([]LineVerdict, error) {
	for try := 1; ; try++ {
		verdicts, err := in.takeLines(ctx, p, lines)
		// A conflict may come of a submit of the file itself that shares a transaction with one of a line.
		if try == retries || !errors.Is(err, pgstore.ErrKBChanged) && !errors.Is(err, pgstore.ErrBlobGone) && !pgstore.Conflict(err) {
			return verdicts, err
		}
		in.kbs.forget(p.Ref.Tenant, p.Ref.KB)
	}
}

func (in *Intake) takeLines(ctx context.Context, p Parent, lines []Line) ([]LineVerdict, error) {
	kb, err := in.kbs.load(ctx, p.Ref.Tenant, p.Ref.KB)
	if _, gone := messages.AsError(err); gone {
		return nil, pgstore.ErrStale
	}
	if err == nil && kb.ID != p.Ref.KBID {
		err = pgstore.ErrKBChanged
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]LineVerdict, len(lines))
	var subs []pgstore.Submission
	var places []int
	var refused error
	for i, line := range lines {
		sub, err := in.prepareLine(kb, p, line)
		verdicts[i].Subspace, verdicts[i].DocID = sub.Subspace, sub.DocID
		if err == nil {
			subs, places = append(subs, sub), append(places, i)
			continue
		}
		if verdicts[i].Err, refused = typed(err), err; verdicts[i].Err == nil {
			return nil, err
		}
		if (&messages.Delete{DocID: sub.DocID, Subspace: sub.Subspace}).Validate() != nil { // it names no document that could be
			verdicts[i].Subspace, verdicts[i].DocID = "", ""
		}
	}
	if refused != nil {
		if err := in.current(ctx, kb, refused); errors.Is(err, pgstore.ErrKBChanged) {
			return nil, err
		}
	}
	return verdicts, in.acceptLines(ctx, kb, p, subs, places, verdicts)
}

// typed is the error as that of a document; nil when it is none.
func typed(err error) *messages.Error {
	e, ok := messages.AsError(err)
	if !ok {
		return nil
	}
	return e
}

// prepareLine checks a line. The submission names the document, where it is known, even when the line is refused.
func (in *Intake) prepareLine(kb pgstore.KB, p Parent, line Line) (pgstore.Submission, error) {
	s, err := messages.DecodeLine(line.Text, messages.LineID(p.Ref.DocID, line.Number))
	if s == nil {
		return pgstore.Submission{}, err
	}
	if s.Subspace == "" {
		s.Subspace = p.Ref.Subspace
	}
	known := pgstore.Submission{Subspace: s.Subspace, DocID: s.DocID}
	if err != nil {
		return known, err
	}
	if s.Subspace == p.Ref.Subspace && s.DocID == p.Ref.DocID {
		return known, messages.Invalid("docId", "is that of the file itself")
	}
	source := fmt.Sprintf("line/%d/%d/%d", p.Ref.DocKey, p.Ref.Version, line.Number)
	from := From{Tenant: kb.Tenant, KB: kb.Name, Source: sourceIn(kb, source), SubmitID: source, Order: p.Order}
	if err := checkScope(from, s.Tenant, s.KnowledgeBaseName); err != nil {
		return known, err
	}
	if s.Metadata, err = inherited(p.Metadata, s.Metadata); err != nil {
		return known, err
	}
	sub, err := in.prepare(kb, from, s)
	if err != nil {
		return known, err
	}
	sub.Line = pgstore.Line{Parent: p.Ref.DocKey, Version: p.Ref.Version, Number: line.Number}
	return sub, nil
}

// inherited is the metadata of a line: those of its file, and over them its own.
func inherited(file, own json.RawMessage) (json.RawMessage, error) {
	if len(own) == 0 {
		return file, nil
	}
	var all, fields map[string]json.RawMessage
	if json.Unmarshal(file, &all) != nil || len(all) == 0 {
		return own, nil
	}
	if err := json.Unmarshal(own, &fields); err != nil {
		return own, nil //nolint:nilerr // the check of metadata says what is wrong
	}
	maps.Copy(all, fields)
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("merge metadata: %w", err)
	}
	return data, nil
}

// acceptLines accepts submissions and fills in the verdicts at their places. When a transaction of several fails for
// one of them, each gets one of its own.
func (in *Intake) acceptLines(ctx context.Context, kb pgstore.KB, p Parent, subs []pgstore.Submission, places []int, verdicts []LineVerdict) error {
	if len(subs) == 0 {
		return nil
	}
	all, err := in.store.AcceptLines(ctx, p.Ref, subs)
	if failed := typed(err); failed != nil {
		if len(subs) == 1 {
			verdicts[places[0]].Err = failed
			return nil
		}
		for i := range subs {
			if err := in.acceptLines(ctx, kb, p, subs[i:i+1], places[i:i+1], verdicts); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	for i, a := range all {
		v, err := in.verdict(kb, subs[i], a)
		if err != nil {
			return err
		}
		verdicts[places[i]].Outcome, verdicts[places[i]].Messages = a.Outcome, v.Messages
	}
	return nil
}
