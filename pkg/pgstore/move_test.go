package pgstore_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/pgstore"
)

// oddChunks are chunks with all that fields may hold, enough of them for several pages and rows of one.
func oddChunks(t *testing.T, n int) []pgstore.StagedChunk {
	t.Helper()
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		t.Fatal(err)
	}
	paths := [][]string{nil, {"one"}, {`quo"ted`, `{a,b}`, "NULL", `back\slash`}, {"标题", ""}}
	out := make([]pgstore.StagedChunk, n)
	for i := range out {
		content := fmt.Sprintf("chunk %d of 水泵 and d'oh \\ words", i)
		if i%100 == 7 {
			content += strings.Repeat(" a long chunk", 3000)
		} else if i%2 == 0 {
			content += strings.Repeat(" filler", 600)
		}
		context := strings.Repeat("Title ", i%3)
		doc := an.Document(context, content)
		out[i] = pgstore.StagedChunk{
			Ordinal: i, PageFrom: i, PageTo: i + 1, Tokens: 7 * i, HeadingPath: paths[i%len(paths)], Context: context, Content: content,
			Hash: sha256.Sum256([]byte(content)), Lex: pgstore.NewTSVector(doc), LexLen: doc.Length,
		}
	}
	return out
}

type movedRow struct {
	PageFrom, PageTo, Tokens, LexLen int
	Path                             []string
	Context, Content, Hash           string
	Lex, Vector                      string
}

func TestAVersionOfManyPagesGoesLiveAsItWasStaged(t *testing.T) {
	e := newEnv(t)
	sub := e.submission("big", "big")
	ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
	if _, err := e.store.BeginParse(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	chunks := oddChunks(t, 1400)
	if _, err := e.store.Stage(t.Context(), pgstore.Staging{Ref: ref, Space: e.kb.Generation.Space, Chunks: chunks}); err != nil {
		t.Fatal(err)
	}
	vectors := e.vectors(len(chunks))
	if err := e.store.StageVectors(t.Context(), ref, vectors[:1000]); err != nil {
		t.Fatal(err)
	}
	res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{e.finished(ref, vectors[900:]...)})
	if err != nil || len(res.Swapped) != 1 {
		t.Fatalf("got %+v (%v), want it swapped", res, err)
	}
	rows, err := e.pool.Query(t.Context(), `SELECT page_from, page_to, tokens, lex_len, heading_path, context, content, encode(hash, 'hex'), lex::text, embedding::text
		FROM chunks WHERE document_key = $1 ORDER BY chunk_id`, ref.DocKey)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[movedRow])
	if err != nil || len(got) != len(chunks) {
		t.Fatalf("rows: got %d (%v), want %d", len(got), err, len(chunks))
	}
	for i, c := range chunks {
		g := got[i]
		if g.PageFrom != c.PageFrom || g.PageTo != c.PageTo || g.Tokens != c.Tokens || g.LexLen != c.LexLen || !slices.Equal(g.Path, c.HeadingPath) ||
			g.Context != c.Context || g.Content != c.Content || g.Hash != fmt.Sprintf("%x", c.Hash) {
			t.Fatalf("chunk %d: got %+v, want %+v", i, g, c)
		}
		if want := fmt.Sprintf("[1,%d,0,0]", i); g.Vector != want { // whole numbers up to 2,048 are exact
			t.Fatalf("vector %d: got %s, want %s", i, g.Vector, want)
		}
		if !strings.Contains(g.Lex, "'水泵':") || !strings.Contains(g.Lex, "'chunk':") || strings.Contains(g.Lex, "'titl':1A") != (i%3 > 0) {
			t.Fatalf("lexemes of chunk %d: got %.200s", i, g.Lex)
		}
	}
	if n := e.count("SELECT (SELECT count(*) FROM staged_chunks) + (SELECT count(*) FROM staged_vectors)"); n != 0 {
		t.Errorf("staged rows: got %d, want none", n)
	}
	if n := e.count("SELECT sum(n_docs) FROM lex_segment"); n != len(chunks) {
		t.Errorf("chunks in segments: got %d, want %d", n, len(chunks))
	}
}

// What a program of another layout staged is not read, and neither are bytes that are no chunks.
func TestStagedRowsThatCannotBeReadGoLiveNowhere(t *testing.T) {
	for what, c := range map[string]struct {
		break_ string
		lost   bool
	}{
		"another layout": {"UPDATE staged_chunks SET layout = layout + 1", true},
		"cut":            {"UPDATE staged_chunks SET rows = substring(rows FROM 1 FOR 50)", false},
		"more than said": {"UPDATE staged_chunks SET rows = rows || '\\x00'::bytea", false},
		"wild length":    {"UPDATE staged_chunks SET rows = '\\x7fffffff00'::bytea", false},
		"null":           {"UPDATE staged_chunks SET rows = '\\xffffffff'::bytea", false},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			sub := e.submission("d", "one")
			ref := e.ref(sub, e.accept(sub, pgstore.Accepted))
			if _, err := e.stage(ref, "one"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.pool.Exec(t.Context(), c.break_); err != nil {
				t.Fatal(err)
			}
			res, err := e.store.SwapVersions(t.Context(), e.kb.Generation.ID, []pgstore.Finished{e.finished(ref, e.vectors(1)...)})
			if c.lost && (err != nil || len(res.Lost) != 1) || !c.lost && err == nil {
				t.Errorf("got %+v (%v), want lost %v", res, err, c.lost)
			}
			if n := e.count("SELECT count(*) FROM chunks"); n != 0 {
				t.Errorf("chunks: got %d, want none", n)
			}
		})
	}
}
