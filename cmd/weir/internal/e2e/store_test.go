package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
	"github.com/weir-project/weir/pkg/testkit"
)

// shelf is what the stores of the contract hold: texts whose order by words is the same by any sensible
// measure, as more words of the query, or the same in less text, stand before fewer.
var shelf = []struct {
	id, text, category string
	year               int
}{
	{"a", "harbour", "town", 2020},
	{"b", "harbour crane", "town", 2021},
	{"c", "crane and bird and lake and reed", "nature", 2022},
	{"d", "lake", "nature", 2023},
	{"e", "bird", "nature", 2024},
}

var shelfSchema = messages.MetadataSchema{{Name: "category", Type: messages.TypeString}, {Name: "year", Type: messages.TypeLong}}

// publishShelf fills a knowledge base through the Go client, and returns it as a store.
func publishShelf(s *system, kb string) *client.Store {
	s.t.Helper()
	c, err := client.New(s.nc, s.tenant, client.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	defer cancel()
	if _, err := c.CreateKB(ctx, messages.CreateKB{KnowledgeBaseName: kb, Metadata: shelfSchema}); err != nil {
		s.t.Fatal(err)
	}
	for _, d := range shelf {
		metadata := json.RawMessage(fmt.Sprintf(`{"category":%q,"year":%d}`, d.category, d.year))
		e, err := c.KB(kb).PublishWait(ctx, client.Document{Submit: messages.Submit{DocID: d.id, Text: text(d.text), Metadata: metadata}})
		if err != nil || e.Status != messages.StatusReady {
			s.t.Fatalf("publish %s: %+v, %v", d.id, e, err)
		}
	}
	return c.Store(kb)
}

// inMemory is the same shelf with the vectors that the real store has.
func inMemory(t testing.TB, like client.VectorStore) *memoryStore {
	t.Helper()
	m := &memoryStore{schema: shelfSchema}
	for _, r := range find(t, like, client.StoreQuery{FilterOnly: true, Filter: where(t, "year > 0"), TopK: 100, OutputVector: true}) {
		metadata, err := json.Marshal(r.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		m.dims = len(r.Vector)
		m.chunks = append(m.chunks, memoryChunk{id: r.DocID, text: r.Text, vector: r.Vector, metadata: metadata})
	}
	return m
}

func where(t testing.TB, expression string) filter.Filter {
	t.Helper()
	f, err := filter.ParseExpression("filter", expression, filter.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func find(t testing.TB, store client.VectorStore, q client.StoreQuery) []client.SearchResult {
	t.Helper()
	found, err := store.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search %+v: %v", q, err)
	}
	return found
}

func storeDocs(found []client.SearchResult) string {
	var out []string
	for _, r := range found {
		out = append(out, r.DocID)
	}
	return strings.Join(out, " ")
}

// storesKeepTheirContract looks at the store over NATS, and at the one in memory that tests may use for it.
func storesKeepTheirContract(s *system) {
	onNATS := publishShelf(s, "shelf")
	for name, store := range map[string]client.VectorStore{"over NATS": onNATS, "in memory": inMemory(s.t, onNATS)} {
		s.t.(*testing.T).Run(name, func(t *testing.T) {
			t.Run("words", func(t *testing.T) { sparseContract(t, store) })
			t.Run("vectors", func(t *testing.T) { vectorContract(t, store) })
			t.Run("both", func(t *testing.T) { hybridContract(t, store) })
			t.Run("conditions alone", func(t *testing.T) { filterContract(t, store) })
			t.Run("refusals", func(t *testing.T) { refusalContract(t, store) })
			t.Run("retrievers", func(t *testing.T) { retrieverContract(t, store) })
			t.Run("builder", func(t *testing.T) { builderContract(t, store) })
		})
	}
}

func sparseContract(t *testing.T, store client.VectorStore) {
	for _, c := range []struct {
		query, where string
		top          int
		want         string
	}{
		{"harbour crane", "", 10, "b a c"},
		{"harbour crane", "", 2, "b a"},
		{"harbour crane", "year < 2022", 10, "b a"},
		{"bird", "", 10, "e c"},
		{"bird", "category = 'town'", 10, ""},
		{"nowhere", "", 10, ""},
	} {
		q := client.StoreQuery{Mode: client.ModeSparse, Text: c.query, TopK: c.top}
		if c.where != "" {
			q.Filter = where(t, c.where)
		}
		found := find(t, store, q)
		if got := storeDocs(found); got != c.want {
			t.Errorf("%q where %q: got %q, want %q", c.query, c.where, got, c.want)
		}
		ordered(t, found)
		for _, r := range found {
			if r.ID != r.DocID+"#0" || r.Text == "" || r.Metadata["category"] == nil || r.Score <= 0 || r.RetrievalPath != "" || r.Vector != nil {
				t.Errorf("%q: got %+v", c.query, r)
			}
		}
	}
}

// ordered checks the order of scores, and of documents where they tie.
func ordered(t *testing.T, found []client.SearchResult) {
	t.Helper()
	for i := 1; i < len(found); i++ {
		if a, b := found[i-1], found[i]; a.Score < b.Score || a.Score == b.Score && a.DocID > b.DocID {
			t.Errorf("%s, %v, stands before %s, %v", a.DocID, a.Score, b.DocID, b.Score)
		}
	}
}

func vectorContract(t *testing.T, store client.VectorStore) {
	for _, own := range find(t, store, client.StoreQuery{FilterOnly: true, Filter: where(t, "year > 0"), TopK: 10, OutputVector: true}) {
		q := client.StoreQuery{Mode: client.ModeVector, Vector: own.Vector, TopK: 10, OutputVector: true}
		found := find(t, store, q)
		if len(found) != len(shelf) || found[0].DocID != own.DocID || found[0].Score < 0.999 || !slices.Equal(found[0].Vector, own.Vector) {
			t.Errorf("the vector of %s: got %s, %+v", own.DocID, storeDocs(found), found[0])
		}
		ordered(t, found)
		for _, r := range found {
			if r.Score < 0 || r.Score > 1 {
				t.Errorf("the vector of %s: %s has the score %v", own.DocID, r.DocID, r.Score)
			}
		}
		q.Filter, q.TopK = where(t, "category = 'nature'"), 2
		if found := find(t, store, q); len(found) != 2 || strings.ContainsAny(storeDocs(found), "ab") {
			t.Errorf("the vector of %s in nature: got %s, want two of c, d and e", own.DocID, storeDocs(found))
		}
	}
}

func hybridContract(t *testing.T, store client.VectorStore) {
	own := find(t, store, client.StoreQuery{FilterOnly: true, Filter: where(t, "year = 2023"), TopK: 1, OutputVector: true})[0]
	ask := func(mode client.Mode, alpha float64) []client.SearchResult {
		q := client.StoreQuery{Mode: mode, Text: "harbour", Vector: own.Vector, TopK: 10, Candidates: 200}
		if mode == client.ModeHybrid {
			q.Alpha = &alpha
		}
		return find(t, store, q)
	}
	sparse, vector := storeDocs(ask(client.ModeSparse, 0)), storeDocs(ask(client.ModeVector, 0))
	if got := storeDocs(ask(client.ModeHybrid, 0)); got != sparse || got == "" {
		t.Errorf("alpha 0: got %q, want that of words, %q", got, sparse)
	}
	if got := storeDocs(ask(client.ModeHybrid, 1)); got != vector || got == "" {
		t.Errorf("alpha 1: got %q, want that of vectors, %q", got, vector)
	}
	both := ask(client.ModeHybrid, 0.5)
	if len(both) != len(shelf) || !slices.ContainsFunc(both[:2], func(r client.SearchResult) bool { return r.DocID == "a" || r.DocID == "b" }) {
		t.Errorf("alpha 0.5: got %q, want all with one that has the word before", storeDocs(both))
	}
	ordered(t, both)
}

func filterContract(t *testing.T, store client.VectorStore) {
	found := find(t, store, client.StoreQuery{FilterOnly: true, Filter: where(t, "category = 'nature'"), TopK: 2, OutputFields: []string{"year"}})
	if storeDocs(found) != "c d" {
		t.Errorf("got %s, want c d", storeDocs(found))
	}
	for _, r := range found {
		if r.Score != 0 || r.RetrievalPath != messages.PathFilter || len(r.Metadata) != 1 || r.Metadata["year"] == nil {
			t.Errorf("got %+v, want no score and the year", r)
		}
	}
}

func refusalContract(t *testing.T, store client.VectorStore) {
	for what, q := range map[string]client.StoreQuery{
		"a vector of another dimension": {Mode: client.ModeVector, Vector: []float32{1}, TopK: 3},
		"an undeclared field":           {Mode: client.ModeSparse, Text: "bird", Filter: where(t, "nothing = 1"), TopK: 3},
		"a value of another type":       {Mode: client.ModeSparse, Text: "bird", Filter: where(t, "year = 'x'"), TopK: 3},
		"an undeclared output":          {Mode: client.ModeSparse, Text: "bird", OutputFields: []string{"nothing"}, TopK: 3},
	} {
		var e *messages.Error
		if found, err := store.Search(t.Context(), q); !errors.As(err, &e) || e.Code != messages.CodeValidation || e.Field == "" {
			t.Errorf("%s: got %v, %v, want VALIDATION_ERROR of a field", what, found, err)
		}
	}
}

// retrieverContract asks by a vector of the store, which one of both needs.
func retrieverContract(t *testing.T, store client.VectorStore) {
	own := find(t, store, client.StoreQuery{FilterOnly: true, Filter: where(t, "year = 2024"), TopK: 1, OutputVector: true})[0]
	opts := client.RetrieverOptions{Embedder: constant(own.Vector)}
	vector, err1 := client.NewVectorRetriever(store, opts)
	sparse, err2 := client.NewSparseRetriever(store, opts)
	hybrid, err3 := client.NewHybridRetriever(store, opts)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]client.Retriever{"vector": vector, "sparse": sparse, "hybrid": hybrid} {
		found, err := r.Retrieve(t.Context(), "bird crane harbour", client.RetrievalConfig{Filters: map[string]any{"category": "nature", "year": 2022}})
		if err != nil || len(found) != 1 || found[0].DocID != "c" || found[0].ChunkID != "c#0" || found[0].RetrievalPath != "" {
			t.Errorf("%s: got %+v, %v, want c alone", name, found, err)
		}
		none, err := r.Retrieve(t.Context(), "bird", client.RetrievalConfig{Filters: map[string]any{"category": "nowhere"}})
		if err != nil || len(none) != 0 {
			t.Errorf("%s: got %+v, %v, want nothing", name, none, err)
		}
	}
	high := 0.999
	found, err := vector.Retrieve(t.Context(), "x", client.RetrievalConfig{ScoreThreshold: &high})
	if err != nil || len(found) != 1 || found[0].DocID != "e" {
		t.Errorf("threshold: got %+v, %v, want e alone", found, err)
	}
}

type constant []float32

func (c constant) Embed(context.Context, string) ([]float32, error) { return c, nil }

func builderContract(t *testing.T, store client.VectorStore) {
	b := client.NewSearch().Text("lake").SearchTypes(messages.FullText).Eq("category", "nature").Between("year", 2022, 2023).OutputFields("year")
	found, err := b.Search(t.Context(), store, nil)
	if err != nil || storeDocs(found) != "d c" || len(found[0].Metadata) != 1 {
		t.Errorf("got %s, %v, want d c", storeDocs(found), err)
	}
	found, err = client.NewSearch().WithVector(false).Ge("year", 2023).MaxResults(5).Search(t.Context(), store, nil)
	if err != nil || storeDocs(found) != "d e" {
		t.Errorf("conditions: got %s, %v, want d e", storeDocs(found), err)
	}
}

// goClient does against all services what the client's own tests do against stand-ins.
func goClient(s *system) {
	t := s.t
	publishShelf(s, "shelf")
	c, err := client.New(s.nc, s.tenant, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	kb := c.KB("shelf")

	for what, limits := range map[string]string{"usual limits": `{}`, "narrow limits": `{"limits":"tablestore"}`} {
		if _, err := kb.Update(ctx, messages.UpdateKB{Retrieval: json.RawMessage(limits)}); err != nil {
			t.Fatal(err)
		}
		r, err := client.NewHybridRetriever(c.Store("shelf"), client.RetrieverOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := r.Retrieve(ctx, "harbour crane", client.RetrievalConfig{}); err != nil || len(found) != len(shelf) || found[0].DocID == "d" {
			t.Errorf("%s: got %+v, %v", what, found, err)
		}
	}
	request, err := client.NewSearch().Text("harbour").Eq("category", "town").Build()
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := kb.Retrieve(ctx, request); err != nil || len(reply.Results) != 2 {
		t.Errorf("retrieve: got %+v, %v, want both of the town", reply.Results, err)
	}
	var listed []string
	for d, err := range kb.Documents(ctx, messages.ListDocuments{Page: messages.Page{MaxResults: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, d.DocID)
	}
	if strings.Join(listed, " ") != "a b c d e" {
		t.Errorf("listed %v", listed)
	}
	e, err := kb.PublishDeleteWait(ctx, messages.Delete{DocID: "a"})
	if err != nil || e.Status != messages.StatusDeleted {
		t.Errorf("delete: got %+v, %v", e, err)
	}
	e, err = kb.PublishWait(ctx, client.Document{Submit: messages.Submit{DocID: "empty", Text: text("...")}})
	var failed *messages.Error
	if !errors.As(err, &failed) || failed.Code != messages.CodeEmptyDocument || e.Status != messages.StatusFailed {
		t.Errorf("a bad document: got %+v, %v, want EMPTY_DOCUMENT", e, err)
	}
	if err := kb.Delete(ctx); err != nil {
		t.Error(err)
	}
	if _, err := kb.Get(ctx); !errors.As(err, &failed) || failed.Code != messages.CodeKBNotFound {
		t.Errorf("got %v, want KNOWLEDGE_BASE_NOT_FOUND", err)
	}
}
