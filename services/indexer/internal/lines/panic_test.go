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

func (b *broken) SplitEnds(context.Context, int) ([]pgstore.SplitEnd, error) { return nil, nil }

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
