package messages_test

import (
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestDecodeLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct{ id, contentType, text string }{
		`{"docId":"a","text":"x"}`:                   {"a", "", "x"},
		`{"_id":"a","text":"x"}`:                     {"a", "", "x"},
		`{"docId":"","_id":"a","text":"x"}`:          {"a", "", "x"},
		`{"text":"x","contentType":"text/markdown"}`: {"f#7", "text/markdown", "x"},
		`{"ossKey":"k","text":"x"}`:                  {messages.IDFromOSSKey("", "k"), "", "x"},
		`{"colour":"red","_id":"a"}`:                 {"a", "application/json", `{"colour":"red","_id":"a"}`},
		`{"_id":3}`:                                  {"f#7", "application/json", `{"_id":3}`},
		`{}`:                                         {"f#7", "application/json", `{}`},
		` {"Text":"x"} `:                             {"f#7", "application/json", ` {"Text":"x"} `},
	} {
		s, err := messages.DecodeLine([]byte(line), messages.LineID("f", 7))
		if err != nil || s.DocID != want.id || s.ContentType != want.contentType || s.Text == nil || *s.Text != want.text {
			t.Errorf("%s: got %+v (%v), want %+v", line, s, err, want)
		}
	}
	for line, want := range map[string]struct{ id, field string }{
		``:                            {"", "body"},
		`"x"`:                         {"", "body"},
		`{"docId":"a"} {}`:            {"", "body"},
		`{"docId":"a","text":3}`:      {"a", "text"},
		`{"docId":"a","text":null}`:   {"a", "text"},
		`{"docId":"a\u0000","b":1}`:   {"a\x00", "docId"},
		`{"text":"x","colour":"red"}`: {"f#7", "colour"},
		`{"upload":{"object":"o"}}`:   {"f#7", "upload"},
	} {
		s, err := messages.DecodeLine([]byte(line), messages.LineID("f", 7))
		e, ok := messages.AsError(err)
		if !ok || e.Field != want.field || (s == nil) != (want.id == "") || s != nil && s.DocID != want.id {
			t.Errorf("%s: got %+v (%v), want an error of %s and id %q", line, s, err, want.field, want.id)
		}
	}
}

func TestLateFailures(t *testing.T) {
	t.Parallel()
	l := messages.Lines{Total: 6, Accepted: 2, Unchanged: 2}
	l.Fail(messages.LineError{Line: 5})
	l.Fail(messages.LineError{Line: 6})
	l.Late([]messages.LineError{{Line: 1}, {Line: 2}, {Line: 4}}, 3)
	if l.Failed != 5 || l.Accepted != 0 || l.Unchanged != 1 || len(l.Errors) != 5 || l.Errors[0].Line != 1 || l.Errors[4].Line != 6 {
		t.Errorf("got %+v", l)
	}
	if e := (&messages.Lines{}).Failure(); e.Code != messages.CodeEmptyDocument {
		t.Errorf("no line: got %v", e)
	}
	for range 2 * messages.MaxLineErrors {
		l.Fail(messages.LineError{Line: 9})
	}
	if len(l.Errors) != messages.MaxLineErrors {
		t.Errorf("got %d errors, want at most %d", len(l.Errors), messages.MaxLineErrors)
	}
}
