package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// Versions and builds that are staged in one call lock documents in order of key, too: whoever holds the first can have the
// second while they wait for it.
func TestStagingVersionsAndBuildsWaitsOneWayOnly(t *testing.T) {
	e := newEnv(t)
	live := e.publish("a", "one")
	j := e.reindex(nil)
	e.fill(j)
	build := e.next(j)[0]
	e.reload()
	sub := e.submission("b", "two")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.store.BeginParse(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // committed below
	const lock = `SELECT key FROM documents WHERE key = $1 FOR UPDATE`
	if _, err := tx.Exec(t.Context(), lock, live.DocKey); err != nil {
		t.Fatal(err)
	}
	staged := make(chan error, 1)
	go func() {
		_, err := e.store.StageAll(t.Context(), []pgstore.Staging{linesOf(ref, e.kb.Generation.Space, "two"), linesOf(build, otherSpace(), "one")})
		staged <- err
	}()
	testkit.Eventually(t, func() error {
		if e.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
			return nil
		}
		return errors.New("the build does not wait")
	})
	if _, err := tx.Exec(t.Context(), lock, ref.DocKey); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-staged; err != nil {
		t.Fatal(err)
	}
	if n := e.count(`SELECT count(*) FROM staged_chunks`); n != 2 {
		t.Errorf("staged: got %d, want both", n)
	}
}
