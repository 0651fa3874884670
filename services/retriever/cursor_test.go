package retriever_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever"
)

// withCursor puts a cursor into a request.
func withCursor(body, cursor string) string {
	return strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"cursor":%q}`, cursor)
}

// follow reads page after page and returns the results of all; between is called before each next page.
func (l *lab) follow(kb, body string, between func(page int)) []messages.RetrievedChunk {
	l.tb.Helper()
	r := l.retrieve(kb, body)
	all := r.Results
	for page := 1; r.NextCursor != ""; page++ {
		if between != nil {
			between(page)
		}
		r = l.retrieve(kb, withCursor(body, r.NextCursor))
		all = append(all, r.Results...)
		if page > 100 {
			l.tb.Fatal("the pages never end")
		}
	}
	return all
}

func (l *lab) remove(kb pgstore.KB, doc string) {
	l.tb.Helper()
	l.seq++
	_, err := l.store.DeleteDocument(l.tb.Context(), pgstore.Deletion{
		KB: kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("s%d", l.seq), SubmitID: fmt.Sprintf("m%d", l.seq), Order: l.order(),
	})
	if err != nil {
		l.tb.Fatal(err)
	}
}

func TestPagesAreTheListInParts(t *testing.T) { // D-27
	l := newLab(t, setup{})
	l.fill(l.kb("docs", nil), 37)
	for _, c := range []string{
		``, `"rerankingConfiguration":{"type":"RRF","numberOfResults":%d}`, `"searchType":["DENSE_VECTOR"],"scoreThreshold":0.4,"rerankingConfiguration":{"numberOfResults":%d}`,
		`"searchType":["FULL_TEXT"],"rerankingConfiguration":{"numberOfResults":%d}`,
	} {
		if c == "" {
			c = `"rerankingConfiguration":{"numberOfResults":%d}`
		}
		all := l.retrieve("docs", ask("pump seal1", fmt.Sprintf("{"+c+"}", 1000)))
		if len(all.Results) < 20 || all.NextCursor != "" {
			t.Fatalf("%s: got %d results and cursor %q, want all and no cursor", c, len(all.Results), all.NextCursor)
		}
		paged := l.follow("docs", ask("pump seal1", fmt.Sprintf("{"+c+"}", 7)), nil)
		if len(paged) != len(all.Results) {
			t.Fatalf("%s: got %d results in pages, want %d", c, len(paged), len(all.Results))
		}
		for i, got := range paged {
			want := all.Results[i]
			if got.DocID != want.DocID || got.Score != want.Score || *got.RawScore != *want.RawScore || *got.RawScoreScaled != *want.RawScoreScaled ||
				fmt.Sprint(got.Explain.Dense) != fmt.Sprint(want.Explain.Dense) && *got.Explain.Dense != *want.Explain.Dense ||
				got.Explain.FullText != nil && *got.Explain.FullText != *want.Explain.FullText || got.Explain.Fusion != want.Explain.Fusion || got.Content != want.Content {
				t.Errorf("%s, place %d: got %+v, want %+v", c, i, got, want)
			}
		}
	}
	if n := l.embeds.Load(); n != 1 {
		t.Errorf("the query was embedded %d times, want once", n)
	}
}

func TestAPageSkipsWhatIsGone(t *testing.T) { // D-27 with swaps and deletes between pages
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 20)
	body := ask("pump seal1", `{"rerankingConfiguration":{"numberOfResults":5}}`)
	all := l.retrieve("docs", ask("pump seal1", ""))
	if len(all.Results) != 20 {
		t.Fatalf("got %d results, want 20", len(all.Results))
	}
	doc := func(i int) string { return all.Results[i].DocID }
	r := l.retrieve("docs", body)
	l.remove(kb, doc(6))
	l.put(kb, messages.DefaultSubspace, doc(8), "pump seal1 in another version")
	l.put(kb, messages.DefaultSubspace, doc(1), "pump seal1, delivered before")
	l.setActive(kb, doc(10), 0, messages.ChunkInactive)
	r = l.retrieve("docs", withCursor(body, r.NextCursor))
	want := []string{doc(5), doc(7), doc(9), doc(11), doc(12)}
	got := func() (out []string) {
		for _, c := range r.Results {
			out = append(out, c.DocID)
		}
		return out
	}
	if !slices.Equal(got(), want) || r.Diagnostics.Skipped != 3 {
		t.Errorf("second page: got %v, %d skipped; want %v, 3", got(), r.Diagnostics.Skipped, want)
	}
	for i := 14; i < 20; i++ {
		l.remove(kb, doc(i))
	}
	r = l.retrieve("docs", withCursor(body, r.NextCursor))
	if !slices.Equal(got(), []string{doc(13)}) || r.Diagnostics.Skipped != 6 || r.NextCursor != "" {
		t.Errorf("last page: got %v, %d skipped, cursor %q; want %s, 6, none", got(), r.Diagnostics.Skipped, r.NextCursor, doc(13))
	}
}

// However the documents change between pages, no page repeats a result and what nobody touched is there.
func TestPagesNeverRepeat(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 40)
	step := 0
	all := l.follow("docs", ask("pump seal1", `{"denseVectorSearchConfiguration":{"numberOfResults":100},"fullTextSearchConfiguration":{"numberOfResults":100},"rerankingConfiguration":{"numberOfResults":4}}`), func(int) {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", step), fmt.Sprintf("pump swapped seal1 %d", step))
		l.remove(kb, fmt.Sprintf("d%02d", 20+step))
		step++
	})
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.DocID] {
			t.Errorf("%s came twice", c.DocID)
		}
		seen[c.DocID] = true
	}
	for i := range 40 {
		if doc := fmt.Sprintf("d%02d", i); !seen[doc] && i%20 >= step {
			t.Errorf("%s is missing", doc)
		}
	}
}

func TestCursorsAreRefused(t *testing.T) { // D-27
	l := newLab(t, setup{cfg: retriever.Config{CursorKey: "a key of sixteen bytes"}})
	kb := l.kb("docs", nil)
	other := l.kb("other", nil)
	l.fill(kb, 9)
	l.fill(other, 9)
	conf := `{"rerankingConfiguration":{"numberOfResults":2}}`
	body := ask("pump", conf)
	cursor := l.retrieve("docs", body).NextCursor
	l.retrieve("docs", withCursor(body, cursor))
	l.retrieve("_", withCursor(strings.Replace(body, "{", `{"knowledgeBaseName":"docs",`, 1), cursor))
	for what, c := range map[string]struct{ kb, body string }{
		"no cursor":              {"docs", withCursor(body, "x")},
		"changed":                {"docs", withCursor(body, "B"+cursor[1:])},
		"cut":                    {"docs", withCursor(body, cursor[:len(cursor)-4])},
		"another text":           {"docs", withCursor(ask("pumps", conf), cursor)},
		"another configuration":  {"docs", withCursor(ask("pump", `{"rerankingConfiguration":{"numberOfResults":3}}`), cursor)},
		"another knowledge base": {"other", withCursor(body, cursor)},
	} {
		refused(t, what, l.call(c.kb, messages.OpRetrieve, c.body, nil), messages.CodeCursorInvalid, "cursor")
	}
	if err := l.store.DeleteKB(t.Context(), "acme", "docs"); err != nil {
		t.Fatal(err)
	}
	refused(t, "deleted", l.call("docs", messages.OpRetrieve, withCursor(body, cursor), nil), messages.CodeKBNotFound, "knowledgeBaseName")
	l.fill(l.kb("docs", nil), 9)
	refused(t, "another generation", l.call("docs", messages.OpRetrieve, withCursor(body, cursor), nil), messages.CodeCursorExpired, "cursor")
	if strings.Contains(l.log.String(), "sixteen") {
		t.Error("the key was logged")
	}
}

// A cut reply loses nothing: its cursor leads to the rest.
func TestACutReplyGoesOn(t *testing.T) { // D-24
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	chunk := "pump " + strings.Repeat("<&>\u0001 ", 4000)
	for i := range 20 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", i), chunk)
	}
	first := l.retrieve("docs", ask("pump", ""))
	if !first.Truncated || first.NextCursor == "" {
		t.Fatalf("got truncated %v, cursor %q; want both", first.Truncated, first.NextCursor)
	}
	all := l.follow("docs", ask("pump", ""), nil)
	if len(all) != 20 || all[0].DocID != "d00" || all[19].DocID != "d19" {
		t.Errorf("got %d results in pages, want the 20 in order", len(all))
	}
	if !strings.Contains(l.log.String(), "no retriever-cursor-key") {
		t.Error("nothing was said about the key of the process")
	}
}
