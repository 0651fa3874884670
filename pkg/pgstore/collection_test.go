package pgstore_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// collectionText is a line of a BEIR corpus or query file.
type collectionText struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// collection reads a test collection: its documents, and the queries somebody judged. The data may not be
// shipped, so a tree without it skips.
func collection(t *testing.T, name string) (docs, queries []collectionText) {
	t.Helper()
	root := os.Getenv("WEIR_EVAL_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "eval")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no test collection at %s (set WEIR_EVAL_DIR): %v", dir, err)
	}
	docs = readLines(t, filepath.Join(dir, "corpus.jsonl.gz"))
	qrels, err := os.ReadFile(filepath.Join(dir, "qrels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]bool{}
	for line := range strings.Lines(string(qrels)) {
		id, _, _ := strings.Cut(line, "\t")
		judged[id] = true
	}
	for _, q := range readLines(t, filepath.Join(dir, "queries.jsonl")) {
		if judged[q.ID] {
			queries = append(queries, q)
		}
	}
	return docs, queries
}

func readLines(t *testing.T, name string) []collectionText {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	var out []collectionText
	for dec := json.NewDecoder(in); ; {
		var line collectionText
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, line)
	}
}

// load makes documents of one chunk live, a few at a time and many in one swap.
func (l *lab) load(docs []collectionText) {
	l.t.Helper()
	const group, writers = 256, 4
	for batch := range slices.Chunk(docs, group) {
		finished := make([]pgstore.Finished, len(batch))
		g, ctx := errgroup.WithContext(l.t.Context())
		g.SetLimit(writers)
		for i, d := range batch {
			sub := l.submission(d.ID, d.Title+"\n"+d.Text)
			g.Go(func() error {
				ref, err := l.write(ctx, sub, d)
				finished[i] = pgstore.Finished{Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version}}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			l.t.Fatal(err)
		}
		res, err := l.store.SwapVersions(l.t.Context(), l.kb.Generation.ID, finished)
		if err != nil || len(res.Swapped) != len(batch) {
			l.t.Fatalf("swap: got %d of %d (%v)", len(res.Swapped), len(batch), err)
		}
	}
}

// write takes a document as far as staged.
func (l *lab) write(ctx context.Context, sub pgstore.Submission, d collectionText) (messages.Ref, error) {
	a, err := l.store.AcceptSubmit(ctx, sub)
	if err != nil {
		return messages.Ref{}, err
	}
	ref := l.ref(sub, a)
	if _, err := l.store.BeginParse(ctx, ref); err != nil {
		return ref, err
	}
	lex := l.an.Document(d.Title, d.Text)
	_, err = l.store.Stage(ctx, pgstore.Staging{Ref: ref, Chunks: []pgstore.StagedChunk{{
		Context: d.Title, Content: d.Text, Hash: sha256.Sum256([]byte(d.Text)), Lex: pgstore.NewTSVector(lex), LexLen: lex.Length,
	}}})
	return ref, err
}

// lexemes reads every live chunk of the knowledge base without its vector.
func (l *lab) lexemes() []stored {
	l.t.Helper()
	rows, err := l.pool.Query(l.t.Context(), `
		SELECT c.chunk_id, d.subspace, d.doc_id, c.ordinal, c.lex_len,
		       (SELECT jsonb_object_agg(lexeme, coalesce(array_length(positions, 1), 1)) FROM unnest(c.lex))
		FROM chunks c JOIN documents d ON d.key = c.document_key AND d.live_version = c.version
		WHERE c.generation = $1
		ORDER BY d.subspace, d.doc_id, c.ordinal`, l.kb.Generation.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (stored, error) {
		var s stored
		return s, row.Scan(&s.id, &s.subspace, &s.docID, &s.ordinal, &s.length, &s.tf)
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// bruteForce is BM25 as written in the books over everything plain SQL shows.
type bruteForce struct {
	all     []stored
	with    map[string][]int // places in all of the chunks that hold a term
	meanLen float64
}

func newBruteForce(all []stored) *bruteForce {
	b := &bruteForce{all: all, with: map[string][]int{}}
	total := 0
	for i, s := range all {
		total += s.length
		for term := range s.tf {
			b.with[term] = append(b.with[term], i)
		}
	}
	b.meanLen = float64(total) / float64(len(all))
	return b
}

func (b *bruteForce) rank(terms []lexical.QueryTerm, limit int) []scored {
	sums := map[int64]float64{}
	for _, q := range terms {
		df := float64(len(b.with[q.Term]))
		idf := math.Log(1 + (float64(len(b.all))-df+0.5)/(df+0.5))
		for _, i := range b.with[q.Term] {
			s := b.all[i]
			tf := float64(s.tf[q.Term])
			sums[s.id] += float64(q.Weight) * idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*float64(s.length)/b.meanLen))
		}
	}
	return rank(b.all, limit, func(s stored) (float64, bool) {
		sum, found := sums[s.id]
		return sum, found
	})
}

// compareAll runs every query against brute force, and some of them on a cold cache too.
func (l *lab) compareAll(queries []collectionText, what string) {
	l.t.Helper()
	const limit = 100
	brute := newBruteForce(l.lexemes())
	cold := pgstore.NewSearcher(l.store, 0)
	for i, q := range queries {
		terms := l.an.Query(q.Text)
		want := brute.rank(terms.Terms, limit)
		if len(want) < limit {
			want = brute.rank(slices.Concat(terms.Terms, terms.Second), limit)
		}
		searchers := []*pgstore.Searcher{l.searcher}
		if i%25 == 0 {
			searchers = append(searchers, cold)
		}
		for _, s := range searchers {
			res, err := s.Search(l.t.Context(), pgstore.SearchPlan{KB: l.kb, Text: l.textPlan(q.Text, limit), Keep: keepFew})
			if err != nil {
				l.t.Fatal(err)
			}
			sameRanking(l.t, fmt.Sprintf("%s, query %s", what, q.ID), res.Found, textRank, func(m pgstore.Match) float64 { return m.BM25 }, want)
		}
	}
}

// keepFew spares the reading of contents that nobody looks at.
func keepFew(f pgstore.Found) []int64 { return keepAll(f)[:min(1, len(f.Matches))] }

func TestTextLegEqualsBruteForceOnARealCollection(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a real collection, left out with -short")
	}
	docs, queries := collection(t, "scifact")
	l := newLab(t)
	l.kb = l.createKB("scifact", messages.IndexTypeBM25)
	l.load(docs)
	if n := l.count("SELECT count(*) FROM chunks"); n != len(docs) || len(queries) < 100 {
		t.Fatalf("got %d chunks of %d documents and %d queries", n, len(docs), len(queries))
	}
	l.compareAll(queries, "as loaded")
	for i := 0; i < len(docs); i += 20 {
		l.remove(messages.DefaultSubspace, docs[i].ID)
	}
	for merged := true; merged; {
		var err error
		if merged, err = l.store.MergeSegments(t.Context(), l.kb.Generation.ID); err != nil {
			t.Fatal(err)
		}
	}
	l.compareAll(queries, "with every twentieth deleted, and merged")
}
