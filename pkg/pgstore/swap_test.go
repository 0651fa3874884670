package pgstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func (e *env) finished(ref messages.Ref, vectors ...pgstore.Vector) pgstore.Finished {
	return pgstore.Finished{Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}, Vectors: vectors}
}

// Several last messages of a version, or the same one twice, may fall into one group.
func TestAVersionNamedTwiceInAGroupIsSwappedOnce(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("twice", "one\ntwo")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	other := e.submission("other", "one")
	otherRef := e.ref(other, e.accept(other, pgstore.Accepted))
	short := e.submission("short", "one\ntwo\nthree")
	shortRef := e.ref(short, e.accept(short, pgstore.Accepted))
	for ref, text := range map[messages.Ref]string{ref: "one\ntwo", otherRef: "one", shortRef: "one\ntwo\nthree"} {
		if _, err := e.stage(ref, text); err != nil {
			t.Fatal(err)
		}
	}
	v := e.vectors(3)
	res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{
		e.finished(ref, v[0]), e.finished(otherRef, v[0]), e.finished(shortRef, v[0]), e.finished(ref, v[1]), e.finished(shortRef, v[0]), e.finished(otherRef, v[0]),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []pgstore.Candidate{{DocKey: ref.DocKey, Version: 1}, {DocKey: otherRef.DocKey, Version: 1}}
	slices.SortFunc(res.Swapped, func(a, b pgstore.Candidate) int { return int(a.DocKey - b.DocKey) })
	if !slices.Equal(res.Swapped, want) || len(res.Incomplete) != 1 || res.Incomplete[0].DocKey != shortRef.DocKey {
		t.Errorf("got %+v, want %v swapped and the short one incomplete, each once", res, want)
	}
	if n := e.count("SELECT count(*) FROM chunks"); n != 3 {
		t.Errorf("chunks: got %d, want 3", n)
	}
	if n := e.count("SELECT sum(n_docs) FROM lex_segment"); n != 3 {
		t.Errorf("chunks in segments: got %d, want 3", n)
	}
}

// The vectors of a version that was overtaken must never stand for those of its successor, though both
// finish in one group.
func TestVectorsInHandBelongToTheirVersion(t *testing.T) {
	e := newEnv(t)
	first := e.submission("doc", "old text")
	old := e.ref(first, e.accept(first, pgstore.Accepted))
	if _, err := e.stage(old, "old text"); err != nil {
		t.Fatal(err)
	}
	second := e.submission("doc", "new text")
	next := e.ref(second, e.accept(second, pgstore.Accepted))
	if _, err := e.stage(next, "new text"); err != nil {
		t.Fatal(err)
	}
	wrong, right := pgstore.Vector{Values: []float32{0, 0, 0, 1}}, pgstore.Vector{Values: []float32{1, 0, 0, 0}}
	res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{e.finished(old, wrong), e.finished(next)})
	if err != nil || len(res.Incomplete) != 1 {
		t.Fatalf("with the vector of the old version alone: got %+v (%v), want it incomplete", res, err)
	}
	res, err = e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{e.finished(old, wrong), e.finished(next, right)})
	if err != nil || !slices.Equal(res.Swapped, []pgstore.Candidate{{DocKey: next.DocKey, Version: 2}}) {
		t.Fatalf("got %+v (%v), want version 2 swapped", res, err)
	}
	var got string
	if err := e.pool.QueryRow(t.Context(), "SELECT embedding::text FROM chunks").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "[1,") {
		t.Errorf("vector of the live chunk: got %s, want that of version 2", got)
	}
}
