package lines_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/lines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken has documents to look after, of which "poison" panics. What it does not have panics too.
type broken struct {
	lines.Store
	open  []pgstore.OpenSplit
	ended []string
	ends  []pgstore.SplitEnd
	told  []string
}

func (b *broken) OpenSplits(context.Context, int64, int) ([]pgstore.OpenSplit, error) {
	return b.open, nil
}

func (b *broken) LoadKB(context.Context, string, string) (pgstore.KB, error) {
	return pgstore.KB{}, nil
}

func (b *broken) OldLines(context.Context, int64, int64, int64, int) ([]pgstore.OldLine, error) {
	return make([]pgstore.OldLine, 3), nil
}

func (b *broken) DeleteDocument(context.Context, pgstore.Deletion) (pgstore.Acceptance, error) {
	panic("broken")
}

func (b *broken) OpenLine(context.Context, messages.Ref, int64) (int64, error) { return 0, nil }

func (b *broken) EndSplit(_ context.Context, o pgstore.OpenSplit) error {
	if o.Ref.DocID == "poison" {
		panic("broken")
	}
	b.ended = append(b.ended, o.Ref.DocID)
	return nil
}

func (b *broken) SplitEnds(_ context.Context, after messages.Ref, _ int) ([]pgstore.SplitEnd, error) {
	if after.DocKey > 0 {
		return nil, nil
	}
	return b.ends, nil
}

func (b *broken) ReceiptsOf(_ context.Context, key, _ int64) ([]pgstore.Receipt, error) {
	if key == 1 {
		panic("broken")
	}
	return nil, nil
}

func (b *broken) SplitTold(_ context.Context, ref messages.Ref) error {
	b.told = append(b.told, ref.DocID)
	return nil
}

func TestAPanicFailsThatDocumentOnly(t *testing.T) {
	t.Parallel()
	b := &broken{open: []pgstore.OpenSplit{
		{Ref: messages.Ref{DocID: "poison", DocKey: 1}, Waiting: true},
		{Ref: messages.Ref{DocID: "lines", DocKey: 2}, Waiting: true, RemoveBelow: 2}, // on goroutines of their own
		{Ref: messages.Ref{DocID: "sound", DocKey: 3}, Waiting: true},
	}}
	err := lines.New(b, nil, slog.New(slog.DiscardHandler)).Pass(t.Context())
	if _, ok := guard.Caught(err); !ok || !strings.Contains(err.Error(), "end poison: panic: broken") || !strings.Contains(err.Error(), "end lines: panic: broken") {
		t.Errorf("got %v, want the panics of two documents", err)
	}
	if !slices.Equal(b.ended, []string{"sound"}) {
		t.Errorf("ended %v, want the third", b.ended)
	}
}

func TestAnEndThatCannotBeToldKeepsNoOtherBack(t *testing.T) {
	t.Parallel()
	b := &broken{ends: []pgstore.SplitEnd{{Ref: messages.Ref{DocID: "poison", DocKey: 1}}, {Ref: messages.Ref{DocID: "sound", DocKey: 2}}}}
	err := lines.New(b, nil, slog.New(slog.DiscardHandler)).Pass(t.Context())
	if _, ok := guard.Caught(err); !ok || !strings.Contains(err.Error(), "tell the end of poison: panic: broken") {
		t.Errorf("got %v, want the panic of the first", err)
	}
	if !slices.Equal(b.told, []string{"sound"}) {
		t.Errorf("told %v, want the second", b.told)
	}
}

// large has a document with very many lines to be removed, of which none can be, before one that only is to be ended.
type large struct {
	broken
	lines, looked int64
	gone          []int64
}

func (l *large) OldLines(_ context.Context, _, _, after int64, limit int) ([]pgstore.OldLine, error) {
	page := make([]pgstore.OldLine, min(l.lines-after, int64(limit)))
	for i := range page {
		page[i].Key = after + int64(i) + 1
	}
	l.looked += int64(len(page))
	return page, nil
}

func (l *large) DeleteDocument(context.Context, pgstore.Deletion) (pgstore.Acceptance, error) {
	return pgstore.Acceptance{Outcome: pgstore.Superseded}, nil
}

func (l *large) ForgetLines(context.Context, int64, []int64) error { return nil }

func (l *large) OldLinesGone(_ context.Context, parent, _ int64) error {
	l.gone = append(l.gone, parent)
	return nil
}

// The removal of very many lines goes on from pass to pass, and keeps no other document from its end meanwhile.
func TestManyLinesKeepNoOtherDocumentBack(t *testing.T) {
	t.Parallel()
	l := &large{lines: 50_000}
	l.open = []pgstore.OpenSplit{
		{Ref: messages.Ref{DocID: "large", DocKey: 1}, RemoveBelow: 2},
		{Ref: messages.Ref{DocID: "small", DocKey: 2}, Waiting: true},
	}
	e := lines.New(l, nil, slog.New(slog.DiscardHandler))
	if err := e.Pass(t.Context()); err != nil || l.looked > 5000 || !slices.Equal(l.ended, []string{"small"}) || len(l.gone) > 0 {
		t.Fatalf("the first pass looked at %d lines, ended %v and finished %v (%v), want a few lines and the end of the small one", l.looked, l.ended, l.gone, err)
	}
	passes := 1
	for ; len(l.gone) == 0 && passes < 1000; passes++ {
		if err := e.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if l.looked != l.lines || !slices.Equal(l.gone, []int64{1}) {
		t.Errorf("in %d passes: looked at %d lines, want each of %d once, and the document finished, not %v", passes, l.looked, l.lines, l.gone)
	}
}
