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

// librarySchema is that of fixture F, with fields of further types and one of no document.
var librarySchema = messages.MetadataSchema{
	{Name: "category", Type: messages.TypeString},
	{Name: "score", Type: messages.TypeLong},
	{Name: "title", Type: messages.TypeString},
	{Name: "year", Type: messages.TypeLong},
	{Name: "published", Type: messages.TypeDate},
	{Name: "tags", Type: messages.TypeStringList},
	{Name: "tenant", Type: messages.TypeString, Internal: true},
	{Name: "weight", Type: messages.TypeDouble},
	{Name: "sold", Type: messages.TypeBoolean},
	{Name: "editions", Type: messages.TypeLongList},
}

// library makes the knowledge base of fixture F; change may alter it.
func (l *lab) library(change func(*pgstore.NewKB)) pgstore.KB {
	l.tb.Helper()
	l.metadata = map[string]string{
		"d1": `{"category":"technology","score":60,"title":"產品手冊","year":2024,"published":"2024-05-01","tags":["prod","docs"],"tenant":"acme"}`,
		"d2": `{"category":"science","score":59,"title":"產品簡介","year":2025,"published":null,"tenant":"acme"}`,
		"d3": `{"category":"technology","score":95,"title":"手冊","year":2026,"tags":[],"tenant":"other"}`,
		"d4": `{"category":"art","score":90,"tenant":"acme"}`,
	}
	kb := l.kb("library", func(n *pgstore.NewKB) {
		n.Schema = librarySchema
		if change != nil {
			change(n)
		}
	})
	for i, doc := range []string{"d1", "d2", "d3", "d4"} {
		l.put(kb, messages.DefaultSubspace, doc, fmt.Sprintf("pump number%d", i))
	}
	return kb
}

// documents are those a request finds, in order of id.
func documents(r messages.RetrieveReply) string {
	var out []string
	for _, c := range r.Results {
		out = append(out, c.DocID)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// expression is a configuration with a filter expression, and more.
func expression(text, more string) string {
	return fmt.Sprintf(`{"filterExpression":%s%s}`, messages.NewExpression(text), more)
}

// legs are ways to search.
var legs = []string{``, `,"searchType":["DENSE_VECTOR"]`, `,"searchType":["FULL_TEXT"]`}

func TestFiltersOfFixtureF(t *testing.T) {
	l := newLab(t, setup{})
	l.library(nil)
	for _, c := range []struct{ id, filter, want string }{
		{"none", ``, "d1 d2 d3 d4"},
		{"CT-29", `{"andAll":[{"in":{"key":"category","value":["technology","science"]}},{"greaterThanOrEquals":{"key":"score","value":60}},{"startsWith":{"key":"title","value":"產品"}}]}`, "d1"},
		{"CT-30", `{"orAll":[{"equals":{"key":"category","value":"science"}},{"greaterThan":{"key":"score","value":90}}]}`, "d2 d3"},
		{"CT-31", `{"notAll":[{"equals":{"key":"category","value":"technology"}},{"greaterThan":{"key":"score","value":90}}]}`, "d2 d4"},
		{"CT-33", `{"andAll":[{"orAll":[{"equals":{"key":"category","value":"art"}},{"notAll":[{"lessThan":{"key":"score","value":90}}]}]},{"notAll":[{"equals":{"key":"year","value":2026}}]}]}`, "d4"},
		{"CT-36", `{"equals":{"key":"score","value":60.0}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"2024-05-01 00:00:00"}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"20240501 000000"}}`, "d1"},
		{"CT-38", `{"equals":{"key":"published","value":"2024-05-01T00:00:00"}}`, "d1"},
		{"CT-38", `{"greaterThanOrEquals":{"key":"published","value":"2024-05-02"}}`, ""},
		{"CT-39", `{"listContains":{"key":"tags","value":"prod"}}`, "d1"},
		{"CT-39", `{"in":{"key":"tags","value":["docs","x"]}}`, "d1"},
		{"CT-39", `{"notIn":{"key":"tags","value":["prod"]}}`, "d3"},
		{"CT-39", `{"equals":{"key":"tags","value":"docs"}}`, "d1"},
		{"CT-41", `{"andAll":[{"equals":{"key":"category","value":"art"}}]}`, "d4"},
		{"CT-43", `{"isNull":{"key":"published"}}`, "d2 d3 d4"},
		{"CT-43", `{"isNotNull":{"key":"published"}}`, "d1"},
		{"CT-43", `{"isNotNull":{"key":"tags"}}`, "d1 d3"},
		{"CT-67", `score NOT BETWEEN 60 AND 90`, "d2 d3"},
		{"CT-67", `category NOT IN ('art')`, "d1 d2 d3"},
		{"CT-67", `title = NULL`, "d4"},
		{"CT-67", `title != NULL`, "d1 d2 d3"},
		{"CT-67", `NOT title = '手冊'`, "d1 d2 d4"},
		{"CT-68", `category = 'x'' OR ''1''=''1'`, ""},
		{"CT-70", `metadata.category = 'art'`, "d4"},
		{"D-16", strings.Repeat("NOT ", 16) + `category = 'art'`, "d4"},
	} {
		for _, leg := range legs {
			configuration := fmt.Sprintf(`{"filter":%s%s}`, c.filter, leg)
			switch {
			case c.filter == "":
				configuration = "{" + strings.TrimPrefix(leg, ",") + "}"
			case c.filter[0] != '{':
				configuration = expression(c.filter, leg)
			}
			if got := documents(l.retrieve("library", ask("pump", configuration))); got != c.want {
				t.Errorf("%s, %s: got %q, want %q", c.id, configuration, got, c.want)
			}
		}
	}
}

func TestFiltersAreRefused(t *testing.T) {
	l := newLab(t, setup{})
	l.library(nil)
	many := func(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }
	const leaf = `{"equals":{"key":"score","value":1}}`
	const deepest = `{"equals":{"key":"nothing","value":1}}`
	nested := func(n int) string {
		return strings.Repeat(`{"notAll":[`, n) + leaf + strings.Repeat(`]}`, n)
	}
	for _, c := range []struct{ id, filter, field, holds string }{
		{"CT-35", deepest, "filter.equals", `"nothing"`},
		{"CT-35", `{"notAll":[{"orAll":[` + leaf + `,{"notAll":[` + deepest + `]}]}]}`, "filter.notAll[0].orAll[1].notAll[0].equals", `"nothing"`},
		{"CT-35", `score = 60 OR NOT (nothing IS NULL)`, "filterExpression", `"nothing"`},
		{"D-23", `{"equals":{"key":"tenant","value":"other"}}`, "filter.equals", `"tenant" is internal`},
		{"D-23", `NOT tenant IS NULL`, "filterExpression", `"tenant" is internal`},
		{"CT-36", `{"equals":{"key":"score","value":"60"}}`, "filter.equals.value", "long"},
		{"CT-36", `{"equals":{"key":"score","value":1.5}}`, "filter.equals.value", "integer"},
		{"CT-36", `{"equals":{"key":"score","value":true}}`, "filter.equals.value", "long"},
		{"CT-36", `{"equals":{"key":"sold","value":1}}`, "filter.equals.value", "boolean"},
		{"CT-36", `{"equals":{"key":"published","value":"2024/05/01"}}`, "filter.equals.value", ""},
		{"CT-36", `{"equals":{"key":"category","value":null}}`, "filter.equals.value", "null"},
		{"CT-41", `{}`, "filter", "one operator"},
		{"CT-41", `{"isNull":{"key":"title"},"isNotNull":{"key":"year"}}`, "filter", "isNotNull"},
		{"CT-41", `{"andAll":[]}`, "filter.andAll", "empty"},
		{"CT-41", `{"in":{"key":"score","value":60}}`, "filter.in.value", "list"},
		{"CT-41", `{"in":{"key":"score","value":[]}}`, "filter.in.value", "empty"},
		{"CT-44", nested(17), "filter" + strings.Repeat(".notAll[0]", 16) + ".notAll", "16"},
		{"CT-44", `{"orAll":[` + many(257, leaf) + `]}`, "filter.orAll[256].equals", "256"},
		{"CT-44", `{"in":{"key":"score","value":[` + many(257, "1") + `]}}`, "filter.in.value", "256"},
		{"CT-44", `score = 1` + strings.Repeat(" ", 2040), "filterExpression", "2048"},
		{"CT-44", strings.Repeat("(", 17) + "score = 1" + strings.Repeat(")", 17), "filterExpression", "16"},
		{"CT-70", `metadata.a.b = 1`, "filterExpression", "a.b"},
		{"empty", ` `, "filterExpression", ""},
	} {
		configuration := fmt.Sprintf(`{"filter":%s}`, c.filter)
		if c.filter[0] != '{' {
			configuration = expression(c.filter, "")
		}
		err := l.call("library", messages.OpRetrieve, ask("pump", configuration), nil)
		refused(t, c.id+", "+clipped(configuration), err, messages.CodeValidation, "retrievalConfiguration."+c.field)
		if err == nil || !strings.Contains(err.Error(), c.holds) {
			t.Errorf("%s, %s: got %v, want it to say %s", c.id, clipped(configuration), err, c.holds)
		}
	}
	for _, near := range []string{nested(16), `{"orAll":[` + many(256, leaf) + `]}`, `{"in":{"key":"score","value":[` + many(256, "1") + `]}}`} {
		l.retrieve("library", ask("pump", `{"filter":`+near+`}`))
	}
	body := ask("pump", `{"filter":`+deepest+`}`)
	refused(t, "search", l.call("library", messages.OpSearch, body, nil), messages.CodeValidation, "retrievalConfiguration.filter.equals")
	refused(t, "batch", l.call("library", messages.OpBatch, batchOf(ask("pump", ""), body), nil), messages.CodeValidation, "queries[1].retrievalConfiguration.filter.equals")
	refused(t, "of another type", l.call("library", messages.OpRetrieve, ask("pump", `{"filterExpression":["a"]}`), nil), messages.CodeValidation, "retrievalConfiguration.filterExpression")
}

func clipped(s string) string { return s[:min(len(s), 120)] }

func TestOperatorsApplyByType(t *testing.T) { // CT-34
	l := newLab(t, setup{})
	l.library(nil)
	values := map[string]string{"title": `"a"`, "score": "1", "weight": "1.5", "sold": "true", "published": `"2024-05-01"`, "tags": `"a"`, "editions": "1"}
	all := []string{"title", "score", "weight", "sold", "published", "tags", "editions"}
	ordered := []string{"score", "weight", "published"}
	for op, fields := range map[string][]string{
		"equals": all, "notEquals": all, "in": all, "notIn": all, "isNull": all, "isNotNull": all,
		"greaterThan": ordered, "greaterThanOrEquals": ordered, "lessThan": ordered, "lessThanOrEquals": ordered,
		"startsWith": {"title"}, "stringContains": {"title"}, "listContains": {"tags", "editions"},
	} {
		for field, value := range values {
			operand := `,"value":` + value
			switch op {
			case "in", "notIn":
				operand = `,"value":[` + value + `]`
			case "isNull", "isNotNull":
				operand = ""
			}
			filter := fmt.Sprintf(`{%q:{"key":%q%s}}`, op, field, operand)
			err := l.call("library", messages.OpRetrieve, ask("pump", `{"searchType":["FULL_TEXT"],"filter":`+filter+`}`), nil)
			if slices.Contains(fields, field) {
				if err != nil {
					t.Errorf("%s: %v, want it to be taken", filter, err)
				}
				continue
			}
			refused(t, filter, err, messages.CodeValidation, "retrievalConfiguration.filter."+op)
		}
	}
}

func TestFilteredListsAreFull(t *testing.T) { // TS-25, PX-02: few match, and all of them are found
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.metadata = map[string]string{}
	for i := range 120 {
		l.metadata[fmt.Sprintf("d%02d", i)] = fmt.Sprintf(`{"of":%q}`, []string{"rare", "usual"}[min(i%24, 1)])
	}
	l.fill(kb, 120)
	for _, k := range []int{1, 3, 5, 20} {
		for _, leg := range legs {
			more := fmt.Sprintf(`%s,"denseVectorSearchConfiguration":{"numberOfResults":%[2]d},"fullTextSearchConfiguration":{"numberOfResults":%[2]d},"rerankingConfiguration":{"numberOfResults":%[2]d}`, leg, k)
			r := l.retrieve("docs", ask("pump seal1", expression(`of = 'rare'`, more)))
			want := min(k, 5)
			if len(r.Results) != want {
				t.Errorf("k %d, %s: got %d results, want %d", k, leg, len(r.Results), want)
			}
			for name, d := range map[string]*messages.LegDiagnostics{"dense": r.Diagnostics.Dense, "full text": r.Diagnostics.FullText} {
				if d != nil && d.Candidates != want {
					t.Errorf("k %d, %s, %s: got %d candidates, want %d", k, leg, name, d.Candidates, want)
				}
			}
			for _, c := range r.Results {
				if string(c.Metadata) != `{"of":"rare"}` {
					t.Errorf("k %d, %s: %s has %s", k, leg, c.DocID, c.Metadata)
				}
			}
		}
	}
}

func TestResultsHoldMetadataAsSupplied(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.library(nil)
	l.metadata["d5"] = `{"editions":[3,1,2],"published":"20240501 120000","score":9007199254740993,"tenant":"acme","weight":1.50}`
	l.put(kb, messages.DefaultSubspace, "d5", "pump")
	r := l.retrieve("library", ask("pump", expression(`score = 9007199254740993 AND published > '2024-05-01' AND editions = 2`, "")))
	if len(r.Results) != 1 {
		t.Fatalf("got %v, want d5", ids(r))
	}
	if got, want := string(r.Results[0].Metadata), `{"editions":[3,1,2],"published":"20240501 120000","score":9007199254740993,"weight":1.50}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequestFilterReplacesTheKnowledgeBases(t *testing.T) { // D-02, C-42
	l := newLab(t, setup{})
	l.library(func(n *pgstore.NewKB) {
		n.Retrieval = json.RawMessage(`{"filter":{"equals":{"key":"category","value":"technology"}},"filterExpression":"score < 95"}`)
	})
	for configuration, want := range map[string]string{
		``: "d1",
		`{"rerankingConfiguration":{"numberOfResults":7}}`:                                  "d1",
		`{"filterExpression":"score < 60"}`:                                                 "d2",
		`{"filter":{"greaterThan":{"key":"score","value":60}}}`:                             "d3 d4",
		`{"filter":{"greaterThan":{"key":"score","value":59}},"filterExpression":"year>0"}`: "d1 d3",
		`{"filter":null}`:           "d1 d2 d3 d4",
		`{"filterExpression":null}`: "d1 d2 d3 d4",
		`{"filter":null,"filterExpression":"category = 'art'"}`: "d4",
	} {
		if got := documents(l.retrieve("library", ask("pump", configuration))); got != want {
			t.Errorf("%s: got %q, want %q", configuration, got, want)
		}
	}
	var found messages.SearchReply
	if err := l.call("library", messages.OpSearch, ask("pump", ""), &found); err != nil || len(found.Results) != 1 || found.Results[0].DocID != "d1" {
		t.Errorf("search: got %+v (%v), want d1", found.Results, err)
	}
	var batch messages.BatchReply
	if err := l.call("library", messages.OpBatch, batchOf(ask("pump", `{"filter":null}`), ask("pump", `{"filterExpression":"score < 60"}`)), &batch); err != nil {
		t.Fatal(err)
	}
	if a, b := documents(batch.Results[0]), documents(batch.Results[1]); a != "d1 d2 d3 d4" || b != "d2" {
		t.Errorf("batch: got %q and %q, want all and d2", a, b)
	}
}

func TestAFieldAddedLaterCanBeFiltered(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.library(nil)
	body := ask("pump", `{"filterExpression":"place IS NULL"}`)
	refused(t, "before", l.call("library", messages.OpRetrieve, body, nil), messages.CodeValidation, "retrievalConfiguration.filterExpression")
	if _, err := l.store.UpdateKB(t.Context(), kb.Tenant, kb.Name, pgstore.KBUpdate{AddFields: messages.MetadataSchema{{Name: "place", Type: messages.TypeString}}}); err != nil {
		t.Fatal(err)
	}
	if got := documents(l.retrieve("library", body)); got != "d1 d2 d3 d4" {
		t.Errorf("after: got %q, want all", got)
	}
}

func TestMandatoryFilterIsOutermost(t *testing.T) { // D-15
	l := newLab(t, setup{})
	kb := l.library(nil)
	mandate := func(filter string) {
		t.Helper()
		if _, err := l.pool.Exec(t.Context(), `UPDATE knowledge_bases SET mandatory_filter = $2, revision = revision + 1 WHERE id = $1`, kb.ID, filter); err != nil {
			t.Fatal(err)
		}
	}
	mandate(`{"equals":{"key":"tenant","value":"$tenant"}}`)
	for _, leg := range legs {
		for text, want := range map[string]string{
			`score > 0`: "d1 d2 d4", `score > 0 OR score IS NULL`: "d1 d2 d4", `NOT category = 'art'`: "d1 d2",
			`category = 'technology'`: "d1", `score = 95`: "", `NOT NOT year = 2026`: "",
		} {
			if got := documents(l.retrieve("library", ask("pump", expression(text, leg)))); got != want {
				t.Errorf("%s%s: got %q, want %q", text, leg, got, want)
			}
		}
	}
	for _, configuration := range []string{``, `{"filter":null,"filterExpression":null}`} {
		if got := documents(l.retrieve("library", ask("pump", configuration))); got != "d1 d2 d4" {
			t.Errorf("%s: got %q, want those of the tenant", configuration, got)
		}
	}
	var paged []string
	for _, c := range l.follow("library", ask("pump", `{"rerankingConfiguration":{"numberOfResults":1}}`), nil) {
		paged = append(paged, c.DocID)
	}
	if slices.Sort(paged); strings.Join(paged, " ") != "d1 d2 d4" {
		t.Errorf("pages: got %v, want those of the tenant", paged)
	}
	mandate(`{"equals":{"key":"nowhere","value":"$tenant"}}`)
	refused(t, "a mandatory filter that does not fit", l.call("library", messages.OpRetrieve, ask("pump", ""), nil), messages.CodeInternal, "")
}

func TestFallbackIsFiltered(t *testing.T) {
	l := newLab(t, setup{})
	l.vectors = map[string][]float32{}
	for i := range 4 {
		l.vectors[fmt.Sprintf("pump number%d", i)] = make([]float32, 8)
	}
	l.library(nil)
	r := l.retrieve("library", ask("pump", expression("score >= 90", `,"searchType":["DENSE_VECTOR"]`)))
	if got := documents(r); got != "d3 d4" || r.Results[0].RetrievalPath != messages.PathFallback {
		t.Errorf("got %+v, want d3 and d4 by the fallback", r.Results)
	}
}

func TestCursorsKeepTheFilter(t *testing.T) { // D-27
	l := newLab(t, setup{})
	kb := l.library(nil)
	body := func(text string) string {
		return ask("pump", expression(text, `,"rerankingConfiguration":{"numberOfResults":1}`))
	}
	r := l.retrieve("library", body("score >= 60"))
	if r.NextCursor == "" {
		t.Fatal("got no cursor, want one")
	}
	for _, other := range []string{body("score >= 59"), ask("pump", `{"rerankingConfiguration":{"numberOfResults":1}}`)} {
		refused(t, "another filter", l.call("library", messages.OpRetrieve, withCursor(other, r.NextCursor), nil), messages.CodeCursorInvalid, "cursor")
	}
	next := l.retrieve("library", withCursor(body("score >= 60"), r.NextCursor))
	if len(next.Results) != 1 || next.Results[0].DocID == r.Results[0].DocID {
		t.Fatalf("second page: got %v after %v", ids(next), ids(r))
	}
	gone := next.Results[0].DocID
	var n int
	if _, err := fmt.Sscanf(gone, "d%d", &n); err != nil {
		t.Fatal(err)
	}
	l.metadata[gone] = `{"score":1}`
	a, err := l.store.AcceptSubmit(t.Context(), l.submission(kb, messages.DefaultSubspace, gone, []string{fmt.Sprintf("pump number%d", n-1)}))
	if err != nil || a.Outcome != pgstore.MetadataOnly {
		t.Fatalf("new metadata: %v, %v", a.Outcome, err)
	}
	again := l.retrieve("library", withCursor(body("score >= 60"), r.NextCursor))
	if len(again.Results) != 1 || again.Results[0].DocID == gone || again.Diagnostics.Skipped != 1 {
		t.Errorf("after %s ceased to match: got %v, %d skipped", gone, ids(again), again.Diagnostics.Skipped)
	}
}
