package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// A merge that is under way when its generation is given up, and dropped, leaves none of its postings behind: nobody would
// ever look for them.
func TestAMergeThatMeetsTheEndOfItsGenerationLeavesNothing(t *testing.T) {
	e := newEnv(t)
	var refs []messages.Ref
	for _, doc := range []string{"a", "b"} {
		sub := e.submission(doc, "text of "+doc)
		ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
		if _, err := e.stage(ref, "text of "+doc); err != nil {
			t.Fatal(err)
		}
		if err := e.store.StageVectors(t.Context(), ref, e.vectors(1)); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	e.swap(refs...)
	e.remove("a")
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // committed below
	if _, err := tx.Exec(t.Context(), `SELECT FROM lex_tombstone FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	waiting := func(n int) {
		testkit.Eventually(t, func() error {
			if len(done)+e.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= n {
				return nil
			}
			return errors.New("it is neither done nor waiting")
		})
	}
	go func() {
		err := ignore(e.store.MergeSegments(t.Context(), e.kb.Generation.ID))
		if pgstore.Conflict(err) {
			err = nil
		}
		done <- err
	}()
	waiting(1)
	if _, err := e.pool.Exec(t.Context(), `UPDATE generations SET state = 'dead', changed_at = now() - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	go func() { done <- ignore(e.store.DropGenerations(t.Context(), 0)) }()
	waiting(2)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"generations", "lex_posting", "lex_segment", "lex_tombstone"} {
		if n := e.count("SELECT count(*) FROM " + table); n != 0 {
			t.Errorf("%s: got %d rows, want none", table, n)
		}
	}
}

func TestSegmentsOfADeadGenerationAreNotMerged(t *testing.T) {
	e := newEnv(t)
	e.publish("a", "one")
	e.remove("a")
	if _, err := e.pool.Exec(t.Context(), `UPDATE generations SET state = 'dead'`); err != nil {
		t.Fatal(err)
	}
	if merged, err := e.store.MergeSegments(t.Context(), e.kb.Generation.ID); err != nil || merged {
		t.Errorf("got %v (%v), want no merge", merged, err)
	}
}
