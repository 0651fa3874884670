package pgstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func TestARepairBuildsChosenDocumentsInPlace(t *testing.T) {
	e := newEnv(t)
	for i, doc := range []string{"a", "b", "c"} {
		sub := e.submission(doc, "text of "+doc)
		sub.Metadata = json.RawMessage(fmt.Sprintf(`{"year": %d}`, 2000+i))
		ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
		if _, err := e.stage(ref, "text of "+doc); err != nil {
			t.Fatal(err)
		}
		if err := e.store.StageVectors(t.Context(), ref, e.vectors(1)); err != nil {
			t.Fatal(err)
		}
		e.swap(ref)
	}
	if err := e.store.SetChunkStatus(t.Context(), e.kb.ID, messages.DefaultSubspace, "b", 0, messages.ChunkInactive, nil); err != nil {
		t.Fatal(err)
	}
	before := e.count("SELECT max(chunk_id) FROM chunks")
	repair := func(sel *messages.JobSelector) []messages.Ref {
		if _, err := e.store.StartJob(t.Context(), pgstore.NewJob{KB: e.kb, Kind: messages.JobRepair, Selector: sel}); err != nil {
			t.Fatal(err)
		}
		j := e.claim()
		if err := e.store.SelectBuilds(t.Context(), j, e.kb.Schema); err != nil {
			t.Fatal(err)
		}
		refs := e.next(j)
		for _, ref := range refs {
			n, err := e.stageBuild(ref)
			if err != nil {
				t.Fatal(err)
			}
			e.commit(ref, n)
		}
		if f := e.flip(j); !f.Done {
			t.Fatalf("end of a repair: got %+v", f)
		}
		return refs
	}
	if refs := repair(&messages.JobSelector{Filter: json.RawMessage(`{"greaterThanOrEquals": {"key": "year", "value": 2001}}`)}); len(refs) != 2 {
		t.Fatalf("chosen by metadata: got %v, want two", refs)
	}
	if n := e.count("SELECT count(*) FROM chunks WHERE chunk_id > $1", before); n != 2 {
		t.Errorf("chunks written anew: got %d, want 2", n)
	}
	if n := e.count("SELECT count(*) FROM chunks WHERE NOT active"); n != 1 {
		t.Errorf("inactive chunks: got %d, want the same one", n)
	}
	if e.contents() != "a:text of a|b:text of b|c:text of c" {
		t.Errorf("readers see %q", e.contents())
	}
	if refs := repair(&messages.JobSelector{Stale: true}); len(refs) != 0 {
		t.Errorf("stale ones: got %v, want none", refs)
	}
	if _, err := e.pool.Exec(t.Context(), "UPDATE chunks SET embedding = NULL WHERE content = 'text of c'"); err != nil {
		t.Fatal(err)
	}
	if refs := repair(&messages.JobSelector{Stale: true}); len(refs) != 1 || refs[0].DocID != "c" || refs[0].Run == 0 {
		t.Errorf("stale ones: got %v, want c with a raised run", refs)
	}
}
