package retriever_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// walk asks for page after page and returns all results; between is done after each page.
func (l *lab) walk(scope, body string, between func(page int)) (all []messages.RetrievedChunk, pages []messages.RetrieveReply) {
	l.tb.Helper()
	next := body
	for {
		r := l.retrieve(scope, next)
		all, pages = append(all, r.Results...), append(pages, r)
		if r.NextCursor == "" {
			return all, pages
		}
		if len(pages) > 200 {
			l.tb.Fatal("the pages do not end")
		}
		if between != nil {
			between(len(pages))
		}
		next = withCursor(body, r.NextCursor)
	}
}

// shownAs is results as they are on the wire.
func shownAs(t *testing.T, all []messages.RetrievedChunk) string {
	t.Helper()
	out, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPagesOfSeveral(t *testing.T) { // D-24, D-25, D-27
	l := newLab(t, setup{})
	tyresAndCakes(l)
	for _, c := range []struct{ configuration, more string }{
		{"", ""},
		{`"searchType":["DENSE_VECTOR"],`, `,"highlight":true`},
		{`"outputConfiguration":{"vector":true,"fields":["of"]},`, ""},
		{"", `,"groupBy":{"type":"document","chunksPerGroup":2}`},
	} {
		ask := func(n int) string {
			return across(`"kb2","kb1"`, "tyre cake", fmt.Sprintf(`{%s"rerankingConfiguration":{"type":"RRF","numberOfResults":%d}}`, c.configuration, n), c.more)
		}
		whole := l.several(ask(50))
		if len(whole.Results) < 4 || whole.NextCursor != "" || whole.Truncated {
			t.Fatalf("%v: one page has %d results, cursor %q", c, len(whole.Results), whole.NextCursor)
		}
		for _, n := range []int{1, 2} {
			all, pages := l.walk(messages.AllScope, ask(n), nil)
			if got, want := shownAs(t, all), shownAs(t, whole.Results); got != want {
				t.Errorf("%v by %d: got\n%s\nwant\n%s", c, n, got, want)
			}
			for i, p := range pages {
				if c.more == "" && len(p.Results) > n || p.Diagnostics.Fusion != whole.Diagnostics.Fusion || p.Diagnostics.Skipped != 0 || (p.Diagnostics.KnowledgeBases == nil) != (i > 0) || p.Truncated {
					t.Errorf("%v by %d, page %d: %d results, %+v", c, n, i, len(p.Results), p.Diagnostics)
				}
			}
		}
	}
}

func TestPagesOfSeveralSkipWhatIsGone(t *testing.T) { // D-09, D-27
	l := newLab(t, setup{})
	kb1, kb2 := tyresAndCakes(l)
	body := across(`"kb1","kb2"`, "tyre", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"numberOfResults":1}}`, "")
	all, pages := l.walk(messages.AllScope, body, func(page int) {
		switch page {
		case 1: // tyre pressure was shown; the next would be tyre width, then what both hold
			l.setActive(kb1, "a", 1, messages.ChunkInactive)
			l.setActive(kb1, "a", 3, messages.ChunkInactive)
		case 3:
			l.setActive(kb1, "a", 1, messages.ChunkActive) // too late
			l.put(kb2, messages.DefaultSubspace, "b", "new cake", "new flour")
		}
	})
	got := texts(messages.RetrieveReply{Results: all})
	if want := []string{"tyre pressure [kb1]", "shared tyre [kb2]", "chain [kb1]"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if s := all[1]; s.DocID != "c" || len(s.Sources) != 1 || s.Sources[0].KB != "kb2" || !strings.Contains(string(s.Metadata), `"c"`) {
		t.Errorf("a text whose first holder is gone: %+v", s)
	}
	var skipped []int
	for _, p := range pages {
		skipped = append(skipped, p.Diagnostics.Skipped)
	}
	if want := []int{0, 1, 0, 2}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %v, want %v", skipped, want)
	}

	first := l.several(body)
	for _, c := range []struct {
		name, scope, body string
		code              messages.Code
		field             string
	}{
		{"another order of names", messages.AllScope, across(`"kb2","kb1"`, "tyre", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"numberOfResults":1}}`, ""), messages.CodeCursorInvalid, "cursor"},
		{"one knowledge base", "kb1", ask("tyre", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"numberOfResults":1}}`), messages.CodeCursorInvalid, "cursor"},
	} {
		refused(t, c.name, l.call(c.scope, messages.OpRetrieve, withCursor(c.body, first.NextCursor), nil), c.code, c.field)
	}
	if err := l.store.DeleteKB(t.Context(), "acme", "kb2"); err != nil {
		t.Fatal(err)
	}
	refused(t, "one is gone", l.call(messages.AllScope, messages.OpRetrieve, withCursor(body, first.NextCursor), nil), messages.CodeKBNotFound, "knowledgeBaseNames[1]")
	l.kb("kb2", nil)
	refused(t, "one is another", l.call(messages.AllScope, messages.OpRetrieve, withCursor(body, first.NextCursor), nil), messages.CodeCursorExpired, "cursor")
}

// manyTexts are two knowledge bases of 45 chunks each, a third of whose texts both hold.
func manyTexts(l *lab) {
	for k, name := range []string{"one", "two"} {
		kb := l.kb(name, nil)
		var chunks []string
		for i := range 45 {
			n := i
			if i%3 != 0 {
				n += 100 * k
			}
			chunks = append(chunks, fmt.Sprintf("pump number%d seal%d", n, i%7))
		}
		l.put(kb, messages.DefaultSubspace, "d", chunks...)
	}
}

// What the memory of a request has no room for is read behind, and makes no difference.
func TestContentsAreReadBehind(t *testing.T) {
	candidates := `"denseVectorSearchConfiguration":{"numberOfResults":45},"fullTextSearchConfiguration":{"numberOfResults":45}`
	bodies := map[string]string{
		"several":               across(`"one","two"`, "pump seal3", `{`+candidates+`,"outputConfiguration":{"vector":true},"rerankingConfiguration":{"numberOfResults":25}}`, ""),
		"several by model":      across(`"one","two"`, "pump seal3", `{`+candidates+`,"rerankingConfiguration":{"type":"MODEL","numberOfResults":100}}`, ""),
		"several without texts": across(`"one","two"`, "pump seal3", `{`+candidates+`,"outputConfiguration":{"content":false},"rerankingConfiguration":{"numberOfResults":25}}`, ""),
	}
	one := ask("pump seal3", `{`+candidates+`,"rerankingConfiguration":{"type":"MODEL","numberOfResults":40}}`)
	shown := map[int64]map[string]string{}
	for _, size := range []int64{0, 1} {
		j := newJudge(t)
		cfg := j.providers(nil)
		cfg.CandidateBytes = size
		l := newLab(t, setup{cfg: cfg})
		manyTexts(l)
		shown[size] = map[string]string{}
		for name, body := range bodies {
			all, pages := l.walk(messages.AllScope, body, nil)
			if shown[size][name] = shownAs(t, all); len(all) != 75 || pages[0].Truncated || pages[0].Diagnostics.Skipped != 0 {
				t.Errorf("%s: %d results, %+v", name, len(all), pages[0].Diagnostics)
			}
		}
		all, pages := l.walk("one", one, nil)
		if d := pages[0].Diagnostics; len(all) != 45 || d.Rerank == nil || d.Dense.Candidates != 45 || d.FullText == nil || d.Skipped != 0 {
			t.Errorf("by model: %d results, %+v", len(all), d)
		}
		shown[size]["by model"] = shownAs(t, all)
	}
	for name, want := range shown[0] {
		if got := shown[1][name]; got != want {
			t.Errorf("%s: got\n%.3000s\nwant\n%.3000s", name, got, want)
		}
	}
}

// A page that a reply has no room for is not read whole.
func TestPagesAreReadAsFarAsTheyFit(t *testing.T) { // D-24
	l := newLab(t, setup{})
	for _, name := range []string{"one", "two"} {
		kb := l.kb(name, nil)
		for i := range 25 {
			l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", i), "pump "+name+strings.Repeat(fmt.Sprintf(" w%d", i), 15_000), fmt.Sprintf("pump small%d", i))
		}
	}
	filter := `{"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"filterExpression":"of IS NOT NULL","rerankingConfiguration":{"numberOfResults":1000}}`
	for _, c := range []struct {
		scope, body string
		want        int
	}{
		{"one", ask("pump", `{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":100},"rerankingConfiguration":{"numberOfResults":1000}}`), 50},
		{"one", filter + `}`, 50},
		{messages.AllScope, across(`"one","two"`, "pump", `{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":100},"rerankingConfiguration":{"numberOfResults":1000}}`, ""), 75},
		{messages.AllScope, filter + `,"knowledgeBaseNames":["one","two"]}`, 100},
	} {
		all, pages := l.walk(c.scope, c.body, nil)
		seen := map[string]bool{}
		for _, r := range all {
			seen[r.Content+fmt.Sprint(r.KBIDs, r.DocID)] = true
		}
		if len(all) != c.want || len(seen) != c.want || !pages[0].Truncated || pages[len(pages)-1].Truncated {
			t.Errorf("%s %.100s: %d results, %d different, over %d pages, want %d", c.scope, c.body, len(all), len(seen), len(pages), c.want)
		}
	}
	if none := l.retrieve("one", ask("pump", `{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":100},"outputConfiguration":{"content":false},"rerankingConfiguration":{"numberOfResults":1000}}`)); len(none.Results) != 50 || none.Truncated || none.Results[0].Content != "" {
		t.Errorf("without contents: %d results, truncated %v", len(none.Results), none.Truncated)
	}
}

func TestFilterQueriesOfSeveral(t *testing.T) { // D-25, D-27, C-49
	l := newLab(t, setup{})
	for _, name := range []string{"one", "two", "none", "three"} {
		kb := l.kb(name, func(n *pgstore.NewKB) { n.Subspaces = name == "two" })
		if name == "none" {
			continue
		}
		for _, doc := range []string{"a", "b", "c"} {
			sub := messages.DefaultSubspace
			if name == "two" {
				sub = "s" + doc
			}
			l.put(kb, sub, doc, "x", "y of "+name)
		}
	}
	ask := func(n int, more string) string {
		return fmt.Sprintf(`{"knowledgeBaseNames":["two","none","one","three"],"subspaces":{"two":["sc","sa"]},"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"filter":{"in":{"key":"of","value":["a","c"]}},"rerankingConfiguration":{"numberOfResults":%d}}%s}`, n, more)
	}
	places := func(all []messages.RetrievedChunk) (out []string) {
		for _, r := range all {
			out = append(out, fmt.Sprintf("%s/%s/%s#%d", strings.Join(r.KBIDs, "+"), r.Subspace, r.DocID, r.ChunkID))
			if r.RetrievalPath != messages.PathFilter || r.RawScore != nil || r.Sources != nil || strings.Contains(string(r.Metadata), "owner") {
				t.Errorf("result %+v", r)
			}
		}
		return out
	}
	want := []string{
		"two/sa/a#0", "two/sa/a#1", "two/sc/c#0", "two/sc/c#1", "one/_default/a#0", "one/_default/a#1", "one/_default/c#0", "one/_default/c#1",
		"three/_default/a#0", "three/_default/a#1", "three/_default/c#0", "three/_default/c#1",
	}
	for _, n := range []int{1, 3, 4, 5, 12, 50} {
		all, pages := l.walk(messages.AllScope, ask(n, ""), nil)
		if got := places(all); !slices.Equal(got, want) || len(pages) != (12+n-1)/n {
			t.Errorf("by %d: got %v on %d pages, want %v", n, got, len(pages), want)
		}
		if d := pages[0].Diagnostics; d.Fusion != messages.PathFilter || d.Dense != nil || d.Generation != 0 {
			t.Errorf("diagnostics %+v", d)
		}
	}
	first := []string{"two/sa/a#0", "two/sc/c#0", "one/_default/a#0", "one/_default/c#0", "three/_default/a#0", "three/_default/c#0"}
	for _, n := range []int{1, 2, 5, 6} {
		all, pages := l.walk(messages.AllScope, ask(n, `,"groupBy":{"type":"document"}`), nil)
		if got := places(all); !slices.Equal(got, first) || len(pages) != (6+n-1)/n {
			t.Errorf("documents by %d: got %v on %d pages, want %v", n, got, len(pages), first)
		}
	}
	if n := l.embeds.Load(); n != 0 {
		t.Errorf("%d embeddings for queries that rank nothing", n)
	}

	page := l.several(ask(6, ""))
	one := mustLoad(l, "one")
	l.put(one, messages.DefaultSubspace, "c", "new") // behind the place: found as it is now
	l.put(one, messages.DefaultSubspace, "a", "new") // shown already
	rest := l.several(withCursor(ask(6, ""), page.NextCursor))
	if got, want := places(rest.Results), []string{"one/_default/c#0", "three/_default/a#0", "three/_default/a#1", "three/_default/c#0", "three/_default/c#1"}; !slices.Equal(got, want) {
		t.Errorf("after a change: got %v, want %v", got, want)
	}
	refused(t, "a cursor of a search", l.call(messages.AllScope, messages.OpRetrieve, withCursor(ask(7, ""), page.NextCursor), nil), messages.CodeCursorInvalid, "cursor")
	refused(t, "no filter", l.call(messages.AllScope, messages.OpRetrieve, `{"knowledgeBaseNames":["one"],"retrievalQuery":{"type":"FILTER"}}`, nil), messages.CodeValidation, "retrievalConfiguration.filter")
	if err := l.store.DeleteKB(t.Context(), "acme", "one"); err != nil {
		t.Fatal(err)
	}
	l.kb("one", nil)
	refused(t, "another knowledge base", l.call(messages.AllScope, messages.OpRetrieve, withCursor(ask(6, ""), page.NextCursor), nil), messages.CodeCursorExpired, "cursor")
}
