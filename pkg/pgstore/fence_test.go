package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// Vectors that arrive while the version's swap commits must not stay behind: nothing but the sweep, minutes
// later, would remove them.
func TestVectorsThatMeetTheSwapLeaveNothingStaged(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("doc", "one")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stage(ref, "one"); err != nil {
		t.Fatal(err)
	}
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // committed below
	if _, err := tx.Exec(t.Context(), `UPDATE documents SET status = 'Ready' WHERE key = $1`, ref.DocKey); err != nil {
		t.Fatal(err)
	}
	staged := make(chan error, 1)
	go func() { staged <- e.store.StageVectors(t.Context(), ref, e.vectors(1)) }()
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(staged) > 0 || e.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
			return nil
		}
		return errors.New("the vectors are neither staged nor waiting")
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-staged; err != nil {
		t.Fatal(err)
	}
	if n := e.count(`SELECT count(*) FROM staged_vectors`); n != 0 {
		t.Errorf("staged vectors of a version that is Ready: got %d, want none", n)
	}
}
