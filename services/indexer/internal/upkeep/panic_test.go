package upkeep_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/upkeep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken panics when the segments of generation 1 are merged, and wherever it has no answer.
type broken struct {
	upkeep.Store
	calls chan int64
}

func (b broken) GenerationsToMerge(context.Context) ([]int64, error) { return []int64{1, 2}, nil }

func (b broken) MergeSegments(ctx context.Context, generation int64) (bool, error) {
	select {
	case b.calls <- generation:
	case <-ctx.Done():
	}
	if generation == 1 {
		panic("broken")
	}
	return false, nil
}

// runs runs a loop while the test looks, and returns what was logged.
func runs(t *testing.T, loop func(ctx context.Context, log *slog.Logger) error, look func()) string {
	t.Helper()
	var log strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx, slog.New(slog.NewTextHandler(&log, nil))) }()
	look()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return log.String()
}

func TestAPanicFailsThatMergeOnly(t *testing.T) {
	t.Parallel()
	b := broken{calls: make(chan int64)}
	log := runs(t, func(ctx context.Context, log *slog.Logger) error {
		return upkeep.NewMerger(b, log).Run(ctx, time.Millisecond)
	}, func() {
		for n := map[int64]int{}; n[1] < 2 || n[2] < 2; { // both, and again in the next round
			n[<-b.calls]++
		}
	})
	if !strings.Contains(log, "merge segments") || !strings.Contains(log, "MergeSegments(") {
		t.Errorf("want the panic and its stack in the log, got:\n%s", log)
	}
}

func TestAPanicEndsThatRoundOnly(t *testing.T) {
	t.Parallel()
	b := brokenHouse{rounds: make(chan struct{})}
	log := runs(t, func(ctx context.Context, log *slog.Logger) error {
		return upkeep.NewHousekeeper(b, nil, log, time.Hour).Run(ctx, time.Millisecond)
	}, func() {
		for range 3 {
			<-b.rounds
		}
	})
	if !strings.Contains(log, "keep house") || !strings.Contains(log, "OrphanedSubmits(") {
		t.Errorf("want the panic and its stack in the log, got:\n%s", log)
	}
}

type brokenHouse struct {
	upkeep.Store
	rounds chan struct{}
}

func (b brokenHouse) OrphanedSubmits(ctx context.Context, _ pgstore.OrphanedSubmit, _ int) ([]pgstore.OrphanedSubmit, error) {
	select {
	case b.rounds <- struct{}{}:
	case <-ctx.Done():
	}
	panic("broken")
}
