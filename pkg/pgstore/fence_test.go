package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// meet runs fn beside a transaction: fn begins when the first statement of the transaction is done, and the others
// follow when fn waits for it. It returns what fn does.
func (e *env) meet(fn func() error, statements ...string) error {
	e.t.Helper()
	tx, err := e.pool.Begin(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // committed below
	done := make(chan error, 1)
	for i, sql := range statements {
		if _, err := tx.Exec(e.t.Context(), sql); err != nil {
			e.t.Fatalf("%s: %v", sql, err)
		}
		if i > 0 {
			continue
		}
		go func() { done <- fn() }()
		testkit.Eventually(e.t, 10*time.Second, func() error {
			if len(done) > 0 || e.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
				return nil
			}
			return errors.New("it is neither done nor waiting")
		})
	}
	if err := tx.Commit(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	return <-done
}

// Vectors that arrive while the version's swap commits must not stay behind: nothing but the sweep, minutes
// later, would remove them.
func TestVectorsThatMeetTheSwapLeaveNothingStaged(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("doc", "one")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.stage(ref, "one"); err != nil {
		t.Fatal(err)
	}
	err := e.meet(func() error { return e.store.StageVectors(t.Context(), ref, e.vectors(1)) }, `UPDATE documents SET status = 'Ready'`)
	if err != nil {
		t.Fatal(err)
	}
	if n := e.count(`SELECT count(*) FROM staged_vectors`); n != 0 {
		t.Errorf("staged vectors of a version that is Ready: got %d, want none", n)
	}
}

// Of several messages of a version that find its chunks lost, the last may come when it was staged again and is live.
func TestAVersionThatIsLiveIsNotReset(t *testing.T) {
	e := newEnv(t)
	ref := e.publish("doc", "one")
	reset := func() error { return ignore(e.store.ResetStaging(t.Context(), ref)) }
	if err := reset(); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("when it is live: got %v, want ErrStale", err)
	}
	if _, err := e.pool.Exec(t.Context(), `UPDATE documents SET status = 'Indexing'`); err != nil {
		t.Fatal(err)
	}
	if err := e.meet(reset, `UPDATE documents SET status = 'Ready'`); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("while it becomes live: got %v, want ErrStale", err)
	}
	if n := e.count(`SELECT coalesce(chunks, 0) FROM document_versions`); n != 1 {
		t.Errorf("chunks that the version knows of: got %d, want 1", n)
	}
}

// A failed version that is taken up again while a newer one is accepted waits for the document first, as everything does.
func TestAVersionThatIsOvertakenMeanwhileIsNotTakenUpAgain(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("doc", "one")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	_, err := e.store.RecordDeadLetter(t.Context(), pgstore.NewDeadLetter{
		Ref: &ref, Tenant: ref.Tenant, KB: ref.KB, DocID: "doc", Source: "dead", Stage: messages.StageParse,
		Error: *messages.Errorf(messages.CodeInternal, "no"), Headers: map[string]string{}, Body: []byte("{}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	err = e.meet(func() (err error) {
		_, ok, err = e.store.ReopenVersion(t.Context(), ref.Tenant, ref.KB, ref.Subspace, "doc", ref.Version)
		return err
	}, `UPDATE documents SET version = 2, status = 'Pending'`, `DELETE FROM document_versions`)
	if err != nil || ok {
		t.Errorf("got %v (%v), want it left alone", ok, err)
	}
}
