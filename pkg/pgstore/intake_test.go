package pgstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func TestTheSameSubmitTwiceIsOneVersion(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("d", "x")
	first := e.accept(sub, pgstore.Accepted)
	second := e.accept(sub, pgstore.Accepted)
	if !second.Again || second.Version != first.Version || second.DocKey != first.DocKey {
		t.Errorf("got %+v after %+v, want the same version again", second, first)
	}
}

func TestUnchangedContentChangesNoRowButReceipts(t *testing.T) {
	e := newEnv(t)
	e.publish("d", "same text")
	before := e.count("SELECT sum(hashtext(documents::text)) FROM documents")
	e.accept(e.submission("d", "same text"), pgstore.Unchanged)
	if after := e.count("SELECT sum(hashtext(documents::text)) FROM documents"); after != before {
		t.Error("the document's row changed")
	}
	late := e.submission("d", "older text")
	newer := e.submission("d", "same text")
	e.accept(newer, pgstore.Unchanged)
	e.accept(late, pgstore.Superseded)
}

func TestAMetadataChangeTouchesOneRow(t *testing.T) {
	e := newEnv(t)
	ref := e.publish("d", "text")
	sub := e.submission("d", "text")
	sub.Metadata = json.RawMessage(`{"year": 2024}`)
	a := e.accept(sub, pgstore.MetadataOnly)
	if a.Version != ref.Version {
		t.Errorf("version: got %d, want %d", a.Version, ref.Version)
	}
	d, err := e.store.GetDocument(t.Context(), e.kb.ID, messages.DefaultSubspace, "d", nil)
	if err != nil || string(d.Metadata) != `{"year": 2024}` || d.Status != messages.StatusReady {
		t.Errorf("got %+v (%v)", d, err)
	}
	again := e.submission("d", "text")
	again.Metadata = json.RawMessage(`{"year":2024}`)
	e.accept(again, pgstore.Unchanged)
}

func TestAnOlderSubmitIsSupersededWhateverTheOrderOfArrival(t *testing.T) {
	e := newEnv(t)
	older, newer := e.submission("d", "older"), e.submission("d", "newer")
	e.accept(newer, pgstore.Accepted)
	e.accept(older, pgstore.Superseded)
}

func TestANewVersionOvertakesAnOpenOneAndFencesItsWork(t *testing.T) {
	e := newEnv(t)
	live := e.publish("d", "live text")
	first := e.submission("d", "first")
	firstRef := e.ref(first, e.accept(first, pgstore.Accepted))
	if _, err := e.stage(firstRef, "first"); err != nil {
		t.Fatal(err)
	}
	second := e.submission("d", "second")
	a := e.accept(second, pgstore.Accepted)
	if len(a.Overtaken) != 1 || a.Overtaken[0].SubmitID != first.SubmitID {
		t.Fatalf("overtaken: got %+v, want the submit %s", a.Overtaken, first.SubmitID)
	}
	if got := e.accept(second, pgstore.Accepted); len(got.Overtaken) != 1 {
		t.Errorf("delivered again: got %+v, want the same overtaken submit", got)
	}
	if _, err := e.stage(firstRef, "first"); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("late parse: got %v, want ErrStale", err)
	}
	if err := e.store.StageVectors(t.Context(), firstRef, e.vectors(1)); err != nil {
		t.Fatal(err)
	}
	if n := e.count("SELECT count(*) FROM staged_vectors"); n != 0 {
		t.Errorf("late vectors: got %d rows, want none", n)
	}
	if e.contents() != "d:live text" || live.Version != 1 {
		t.Errorf("readers see %q, want the live text", e.contents())
	}
}

// Numbers that pass the check of metadata can be stored: what the database refused would be tried for ever.
func TestEveryAcceptedNumberCanBeStored(t *testing.T) {
	e := newEnv(t)
	schema := testSchema()
	stored, refused := 0, 0
	for i, n := range []string{
		"0", "-0", "1e308", "4.9e-324", "1e-400", "1e-401", "1e-999999", "0e-20000", "0e20000", "1e999999", "6e1", "9007199254740993",
		"0." + strings.Repeat("0", 390) + "1", "0." + strings.Repeat("0", 20_000) + "1", strings.Repeat("1", 300), strings.Repeat("1", 20_000),
	} {
		for _, field := range []string{"d", "l"} {
			raw, err := schema.ValidateMetadata(json.RawMessage(`{"` + field + `": ` + n + `}`))
			if err != nil {
				refused++
				continue
			}
			sub := e.submission(fmt.Sprintf("%s%d", field, i), "text")
			sub.Metadata = raw
			e.accept(sub, pgstore.Accepted)
			stored++
		}
	}
	if stored < 8 || refused < 8 {
		t.Errorf("stored %d and refused %d, want some of both", stored, refused)
	}
}

// What is told at once of a submit or delete is told again the same when it is delivered again, whatever has become of its
// document: else one that failed, or was superseded, would be Ready as well.
func TestARepeatedSubmitTellsWhatItToldAtFirst(t *testing.T) {
	e := newEnv(t)
	type told struct {
		sub  pgstore.Submission
		want messages.DocumentStatus
	}
	var all []told
	first := func(sub pgstore.Submission, outcome pgstore.Outcome, want messages.DocumentStatus) {
		t.Helper()
		if a := e.accept(sub, outcome); a.Status != want {
			t.Errorf("%s of %s: told %s, want %s", outcome, sub.DocID, a.Status, want)
		}
		all = append(all, told{sub, want})
	}
	again := func(when string) {
		t.Helper()
		for _, c := range all {
			a, ok, err := e.store.Answered(t.Context(), c.sub)
			if err != nil || !ok || a.Status != c.want {
				t.Errorf("%s: %s was told %s, looked up it is %q (%v)", when, c.sub.SubmitID, c.want, a.Status, err)
			}
			if a, err = e.store.AcceptSubmit(t.Context(), c.sub); err != nil || !a.Again || a.Status != c.want {
				t.Errorf("%s: %s was told %s, again it is %q (%v)", when, c.sub.SubmitID, c.want, a.Status, err)
			}
		}
	}
	late := e.submission("d", "too late")
	first(e.submission("d", "one"), pgstore.Accepted, messages.StatusPending)
	first(e.submission("d", "one"), pgstore.Unchanged, messages.StatusPending)
	again("pending")
	if _, err := e.pool.Exec(t.Context(), `UPDATE documents SET status = 'Failed'`); err != nil {
		t.Fatal(err)
	}
	again("failed")
	e.publish("d", "two")
	again("a newer version is ready")
	first(e.submission("d", "two"), pgstore.Unchanged, messages.StatusReady)
	metadata := e.submission("d", "two")
	metadata.Metadata = json.RawMessage(`{"year": 2026}`)
	first(metadata, pgstore.MetadataOnly, messages.StatusReady)
	first(late, pgstore.Superseded, messages.StatusSuperseded)
	first(e.submission("d", "three"), pgstore.Accepted, messages.StatusPending)
	again("a newer version is pending")
	e.remove("d")
	again("deleted")
}

// A document may be published again and again while it waits, by a clock for instance: every submit has its end.
func TestEverySubmitOfAnOpenVersionIsToldOfItsEnd(t *testing.T) {
	e := newEnv(t)
	const repeats = 1500
	first := e.submission("d", "x")
	a := e.accept(first, pgstore.Accepted)
	_, err := e.pool.Exec(t.Context(), `INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome)
		SELECT 'repeat' || n, $1, $2, $3, n, n, 'repeat' || n, 'unchanged' FROM generate_series(1, $4) n`, e.kb.ID, a.DocKey, a.Version, repeats)
	if err != nil {
		t.Fatal(err)
	}
	failed, err := e.store.ReceiptsOf(t.Context(), a.DocKey, a.Version)
	if err != nil || len(failed) != repeats+1 {
		t.Errorf("failed: %d are told (%v), want %d", len(failed), err, repeats+1)
	}
	newer := e.accept(e.submission("d", "y"), pgstore.Accepted)
	if len(newer.Overtaken) != repeats+1 {
		t.Errorf("superseded: %d are told, want %d", len(newer.Overtaken), repeats+1)
	}
}
