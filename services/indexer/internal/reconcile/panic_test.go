package reconcile_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/reconcile"
)

// broken has two versions that only have to be finished, of which the first panics.
type broken struct {
	reconcile.Store
	finished []string
}

func (b *broken) OpenVersions(context.Context, int64, time.Duration, int) ([]pgstore.OpenVersion, error) {
	none := 0
	return []pgstore.OpenVersion{
		{Ref: messages.Ref{DocID: "poison", DocKey: 1}, Expected: &none},
		{Ref: messages.Ref{DocID: "sound", DocKey: 2}, Expected: &none},
	}, nil
}

func (b *broken) OpenBuilds(context.Context, int64, time.Duration, int) ([]pgstore.OpenVersion, error) {
	return nil, nil
}

func (b *broken) Finish(_ context.Context, ref messages.Ref, _ int) ([]bus.Message, error) {
	if ref.DocID == "poison" {
		panic("broken")
	}
	b.finished = append(b.finished, ref.DocID)
	return nil, nil
}

func (b *broken) PublishAck(context.Context, ...bus.Message) ([]bus.Ack, error) { return nil, nil }

func TestAPanicFailsThatVersionOnly(t *testing.T) {
	t.Parallel()
	b := &broken{}
	r := reconcile.New(b, b, b, nil, slog.New(slog.DiscardHandler), grace)
	now := time.Unix(1_700_000_000, 0)
	if err := r.Pass(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	err := r.Pass(t.Context(), now.Add(grace))
	if _, ok := guard.Caught(err); !ok || !slices.Equal(b.finished, []string{"sound"}) {
		t.Errorf("finished %v (%v), want the second, and the panic of the first", b.finished, err)
	}
}
