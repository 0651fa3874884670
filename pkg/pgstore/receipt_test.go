package pgstore_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

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
			a, ok, err := e.store.Answered(t.Context(), e.kb.ID, c.sub.Source)
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
