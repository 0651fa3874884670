package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
		testkit.Eventually(e.t, func() error {
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

// staged is a build of a document of two chunks that waits for vectors, and the job that it is for.
func (e *env) staged() messages.Ref {
	e.t.Helper()
	e.publish("doc", "one\ntwo")
	j := e.reindex(nil)
	e.fill(j)
	ref := e.next(j)[0]
	if _, err := e.stageBuild(ref); err != nil {
		e.t.Fatal(err)
	}
	return ref
}

// What drops the staged rows of a build, or adds some, waits for the document first: a swap that is under way has counted them.
func TestWhatIsStagedOfABuildStaysForTheSwapUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		do             func(*env, messages.Ref) error
		then           string
		err            error
		chunks, vector int
	}{
		"a dead letter": {func(e *env, ref messages.Ref) error {
			return ignore(e.store.RecordDeadLetter(e.t.Context(), pgstore.NewDeadLetter{Ref: &ref, Error: *messages.Errorf(messages.CodeInternal, "no")}))
		}, "done", nil, 1, 0},
		"lost chunks":             {func(e *env, ref messages.Ref) error { return ignore(e.store.ResetStaging(e.t.Context(), ref)) }, "done", pgstore.ErrStale, 1, 0},
		"vectors, and it is done": {func(e *env, ref messages.Ref) error { return e.store.StageVectors(e.t.Context(), ref, e.vectors(1)) }, "done", nil, 1, 0},
		"vectors, and it failed":  {func(e *env, ref messages.Ref) error { return e.store.StageVectors(e.t.Context(), ref, e.vectors(1)) }, "failed", nil, 1, 0},
		"vectors":                 {func(e *env, ref messages.Ref) error { return e.store.StageVectors(e.t.Context(), ref, e.vectors(1)) }, "pending", nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ref := e.staged()
			err := e.meet(func() error { return c.do(e, ref) }, `SELECT FROM documents FOR UPDATE`, `UPDATE document_builds SET state = '`+c.then+`'`)
			if !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if chunks, vectors := e.count(`SELECT count(*) FROM staged_chunks`), e.count(`SELECT count(*) FROM staged_vectors`); chunks != c.chunks || vectors != c.vector {
				t.Errorf("staged: got %d rows of chunks and %d vectors, want %d and %d", chunks, vectors, c.chunks, c.vector)
			}
		})
	}
}

// A build that fails while some of its vectors are being staged leaves none of them.
func TestABuildThatFailsLeavesNoVectors(t *testing.T) {
	e := newEnv(t)
	ref := e.staged()
	err := e.meet(func() error {
		return ignore(e.store.RecordDeadLetter(t.Context(), pgstore.NewDeadLetter{Ref: &ref, Error: *messages.Errorf(messages.CodeInternal, "no")}))
	}, `SELECT FROM documents FOR SHARE`, `INSERT INTO staged_vectors SELECT generation, document_key, version, 0, '[1,0,0,0]' FROM document_builds`)
	if err != nil {
		t.Fatal(err)
	}
	if n := e.count(`SELECT count(*) FROM staged_vectors`); n != 0 {
		t.Errorf("staged vectors: got %d, want none", n)
	}
}

// The list of a repair takes a while where there are many documents, and some always change meanwhile.
func TestARepairLeavesOutWhatIsReplacedMeanwhile(t *testing.T) {
	e := newEnv(t)
	e.publish("stays", "one")
	replaced := e.publish("replaced", "two")
	if _, err := e.store.StartJob(t.Context(), pgstore.NewJob{KB: e.kb, Kind: messages.JobRepair}); err != nil {
		t.Fatal(err)
	}
	j := e.claim()
	one := fmt.Sprintf(` WHERE document_key = %d`, replaced.DocKey)
	err := e.meet(func() error { return e.store.SelectBuilds(t.Context(), j, nil) },
		`DELETE FROM document_versions`+one, fmt.Sprintf(`UPDATE documents SET live_version = NULL, status = 'Deleted' WHERE key = %d`, replaced.DocKey))
	if err != nil {
		t.Fatal(err)
	}
	if refs := e.next(j); len(refs) != 1 || refs[0].DocID != "stays" {
		t.Errorf("on the list: %v, want the one that stays", refs)
	}
}

// A content that is collected while a submit refers to it: the submit is not accepted, so that it can be once more, with its content.
func TestASubmitWhoseContentIsGoneLeavesNothing(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("doc", "one")
	if err := e.store.PutBlob(t.Context(), e.kb.ID, sub.Blob, strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	accept := func() error { return ignore(e.store.AcceptSubmit(t.Context(), sub)) }
	if err := e.meet(accept, `SELECT FROM blobs FOR UPDATE`, `DELETE FROM blob_parts`, `DELETE FROM blobs`); !errors.Is(err, pgstore.ErrBlobGone) {
		t.Errorf("got %v, want ErrBlobGone", err)
	}
	if n := e.count(`SELECT (SELECT count(*) FROM document_versions) + (SELECT count(*) FROM document_receipts)`); n != 0 {
		t.Errorf("versions and receipts: got %d, want none", n)
	}
	if a := e.accept(sub, pgstore.Accepted); a.Again || e.count(`SELECT count(*) FROM blobs`) != 1 {
		t.Errorf("the second time: got %+v and %d contents, want it accepted with its content", a, e.count(`SELECT count(*) FROM blobs`))
	}
}

// A key that is new when two documents come with it at once is the first one's.
func TestAKeyThatAnotherDocumentTakesMeanwhileIsRefused(t *testing.T) {
	for what, act := range map[string]func(*env, string) error{
		"submit": func(e *env, source string) error {
			sub := e.submission("b", "two")
			sub.Source = source
			_, err := e.store.AcceptSubmit(e.t.Context(), sub)
			return err
		},
		"delete": func(e *env, source string) error {
			_, err := e.store.DeleteDocument(e.t.Context(), pgstore.Deletion{
				KB: e.kb, Subspace: messages.DefaultSubspace, DocID: "b", Source: source, SubmitID: "d", Order: e.submission("b", "").Order,
			})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			a, b := e.publish("a", "one"), e.publish("b", "one")
			err := e.meet(func() error { return act(e, "key") }, fmt.Sprintf(`INSERT INTO document_receipts
				(source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, status) VALUES ('key', %d, %d, 1, 1, 1, 's', 'unchanged', 'Ready')`, e.kb.ID, a.DocKey))
			if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field != messages.HeaderIdempotencyKey {
				t.Errorf("got %v, want the key refused", err)
			}
			if n := e.count(fmt.Sprintf(`SELECT version FROM documents WHERE key = %d AND status = 'Ready'`, b.DocKey)); n != 1 {
				t.Errorf("the document is at version %d, want 1", n)
			}
		})
	}
}

// Several messages of a version may find its chunks lost. One that comes when another has had them staged anew leaves
// them alone, also when it looked before that.
func TestWhatWasStagedAnewIsNotReset(t *testing.T) {
	for name, open := range map[string]func(*env) (messages.Ref, func() error){
		"version": func(e *env) (messages.Ref, func() error) {
			sub := e.submission("doc", "one\ntwo")
			ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
			stage := func() error { _, err := e.stage(ref, "one\ntwo"); return err }
			if err := stage(); err != nil {
				e.t.Fatal(err)
			}
			return ref, stage
		},
		"build": func(e *env) (messages.Ref, func() error) {
			ref := e.staged()
			return ref, func() error { _, err := e.stageBuild(ref); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ref, stage := open(e)
			kept := e.count(`SELECT count(*) FROM staged_chunks`)
			reset := func() error { return ignore(e.store.ResetStaging(t.Context(), ref)) }
			if err := reset(); !errors.Is(err, pgstore.ErrStale) {
				t.Errorf("nothing is lost: got %v, want ErrStale", err)
			}
			if _, err := e.pool.Exec(t.Context(), `CREATE TABLE aside AS SELECT * FROM staged_chunks; DELETE FROM staged_chunks`); err != nil {
				t.Fatal(err)
			}
			err := e.meet(reset, `SELECT FROM documents FOR UPDATE`, `INSERT INTO staged_chunks SELECT * FROM aside`)
			if !errors.Is(err, pgstore.ErrStale) {
				t.Errorf("staged anew while it waits: got %v, want ErrStale", err)
			}
			if n := e.count(`SELECT count(*) FROM staged_chunks`); n != kept {
				t.Errorf("staged: got %d rows, want %d", n, kept)
			}
			if _, err := e.pool.Exec(t.Context(), `DELETE FROM staged_chunks`); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(reset(), stage()); err != nil {
				t.Errorf("lost, and staged again: %v", err)
			}
			if n := e.count(`SELECT count(*) FROM staged_chunks`); n != kept {
				t.Errorf("staged again: got %d rows, want %d", n, kept)
			}
		})
	}
}
