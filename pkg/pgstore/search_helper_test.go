package pgstore_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgvector/pgvector-go"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/postings"
)

// lab drives a knowledge base through the store's own door and searches it.
type lab struct {
	*env
	searcher *pgstore.Searcher
	an       *lexical.Analyzer
}

func newLab(t *testing.T) *lab {
	t.Helper()
	e := newEnv(t)
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{env: e, searcher: pgstore.NewSearcher(e.store, 32<<20), an: an}
}

// newKB switches the lab to a fresh knowledge base.
func (l *lab) newKB(name, metric string, subspaces bool) {
	l.t.Helper()
	kb, err := l.store.CreateKB(l.t.Context(), pgstore.NewKB{
		Tenant: "acme", Name: name, IndexType: messages.IndexTypeHybrid, Subspaces: subspaces, Schema: testSchema(),
		Generation: pgstore.Generation{
			Parser: "p1", Chunking: messages.Chunking{Strategy: "tokens", Size: 400}, Analyzer: lexical.Default,
			Space: &messages.Space{Model: "fake", Dims: dims, Metric: metric},
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.kb = kb
}

// put makes a document with these chunks and vectors live. A nil vector list makes random ones.
func (l *lab) put(subspace, doc string, chunks []string, vectors [][]float32, rng *rand.Rand) messages.Ref {
	l.t.Helper()
	text := strings.Join(chunks, "\n")
	sub := l.submission(doc, text)
	sub.Subspace, sub.Metadata = subspace, json.RawMessage(`{"of":"`+doc+`"}`)
	sub.Blob.SHA256 = sha256.Sum256([]byte(text + sub.Source))
	ref := l.ref(sub, l.accept(sub, pgstore.Accepted))
	if _, err := l.store.BeginParse(l.t.Context(), ref); err != nil {
		l.t.Fatal(err)
	}
	st := pgstore.Staging{Ref: ref, Space: l.kb.Generation.Space}
	values := make([]pgstore.Vector, len(chunks))
	for i, chunk := range chunks {
		d := l.an.Document("", chunk)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: chunk, HeadingPath: []string{"h", doc}, PageFrom: i, PageTo: i + 1,
			Hash: sha256.Sum256([]byte(chunk + sub.Source)), Lex: pgstore.NewTSVector(d), LexLen: d.Length,
		})
		values[i] = pgstore.Vector{Ordinal: i, Values: []float32{rng.Float32() - .5, rng.Float32() - .5, rng.Float32() - .5, rng.Float32() - .5}}
		if vectors != nil {
			values[i].Values = vectors[i]
		}
	}
	if _, err := l.store.Stage(l.t.Context(), st); err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.StageVectors(l.t.Context(), ref, values); err != nil {
		l.t.Fatal(err)
	}
	if res := l.swap(ref); len(res.Swapped) != 1 {
		l.t.Fatalf("swap of %s: got %+v, want it swapped", doc, res)
	}
	return ref
}

func (l *lab) remove(subspace, doc string) {
	l.t.Helper()
	sub := l.submission(doc, "")
	_, err := l.store.DeleteDocument(l.t.Context(), pgstore.Deletion{
		KB: l.kb, Subspace: subspace, DocID: doc, Source: sub.Source, SubmitID: sub.SubmitID, Order: sub.Order,
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func terms(list []lexical.QueryTerm) []postings.Term {
	var out []postings.Term
	for _, t := range list {
		out = append(out, postings.Term{Hash: postings.TermHash(t.Term), Weight: float64(t.Weight)})
	}
	return out
}

func (l *lab) textPlan(query string, limit int) *pgstore.TextPlan {
	q := l.an.Query(query)
	return &pgstore.TextPlan{Terms: terms(q.Terms), More: terms(q.Second), K1: postings.DefaultK1, B: postings.DefaultB, Limit: limit}
}

func keepAll(f pgstore.Found) []int64 {
	var ids []int64
	for _, m := range f.Matches {
		ids = append(ids, m.ChunkID)
	}
	return ids
}

func (l *lab) search(plan pgstore.SearchPlan) pgstore.SearchResult {
	l.t.Helper()
	plan.KB = l.kb
	if plan.Keep == nil {
		plan.Keep = keepAll
	}
	res, err := l.searcher.Search(l.t.Context(), plan)
	if err != nil {
		l.t.Fatal(err)
	}
	return res
}

// stored is a chunk as plain SQL sees it.
type stored struct {
	id              int64
	subspace, docID string
	ordinal, length int
	tf              map[string]int
	vector          []float32
}

// stored reads every live chunk of the knowledge base.
func (l *lab) stored() []stored {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), `
		SELECT c.chunk_id, d.subspace, d.doc_id, c.ordinal, c.lex_len, c.embedding,
		       (SELECT jsonb_object_agg(lexeme, coalesce(array_length(positions, 1), 1)) FROM unnest(c.lex))
		FROM chunks c JOIN documents d ON d.key = c.document_key AND d.live_version = c.version
		WHERE c.generation = $1 AND c.active`, l.kb.Generation.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	var out []stored
	for rows.Next() {
		var s stored
		var v pgvector.HalfVector
		if err := rows.Scan(&s.id, &s.subspace, &s.docID, &s.ordinal, &s.length, &v, &s.tf); err != nil {
			l.t.Fatal(err)
		}
		s.vector = v.Slice()
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.subspace, b.subspace), cmp.Compare(a.docID, b.docID), cmp.Compare(a.ordinal, b.ordinal))
	})
	return out
}

// scored is a chunk with what a brute-force ranking gives it; larger is better.
type scored struct {
	stored
	score float64
}

// rank orders by falling score; all keeps the order of identity among equals.
func rank(all []stored, limit int, score func(stored) (float64, bool)) []scored {
	var out []scored
	for _, s := range all {
		if v, ok := score(s); ok {
			out = append(out, scored{s, v})
		}
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return out[:min(limit, len(out))]
}

// bm25 is the ranking function as written in the books, over chunks read by SQL.
func bm25(all []stored, query []lexical.QueryTerm) func(stored) (float64, bool) {
	total, df := 0.0, map[string]int{}
	for _, s := range all {
		total += float64(s.length)
		for term := range s.tf {
			df[term]++
		}
	}
	n, mean := float64(len(all)), total/float64(len(all))
	return func(s stored) (float64, bool) {
		sum, found := 0.0, false
		for _, q := range query {
			tf := float64(s.tf[q.Term])
			if tf == 0 {
				continue
			}
			found = true
			idf := math.Log(1 + (n-float64(df[q.Term])+0.5)/(float64(df[q.Term])+0.5))
			sum += float64(q.Weight) * idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*float64(s.length)/mean))
		}
		return sum, found
	}
}

func near(metric string, a, b []float32) float64 {
	var dot, aa, bb, diff float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb, diff = dot+x*y, aa+x*x, bb+y*y, diff+(x-y)*(x-y)
	}
	switch metric {
	case "cosine":
		return dot / math.Sqrt(aa*bb)
	case "ip":
		return dot
	}
	return -diff
}
