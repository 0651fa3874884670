package retriever_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// listing is a FILTER query with a configuration, and more.
func listing(configuration, more string) string {
	return fmt.Sprintf(`{"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":%s%s}`, configuration, more)
}

func TestFilterQuery(t *testing.T) { // CT-60
	l := newLab(t, setup{noEmbedder: true})
	l.library(nil)
	raw, err := l.nc.Request(messages.RPCSubject("acme", "library", messages.OpRetrieve), []byte(listing(expression("score >= 59", `,"outputConfiguration":{"fields":["title"]}`), `,"explain":true,"highlight":true`)), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{`"score"`, `"rawScore`, `"explain"`, `"highlights"`, `"nextCursor"`, `"tenant"`} {
		if strings.Contains(string(raw.Data), absent+":") {
			t.Errorf("got %s in %s, want none", absent, raw.Data)
		}
	}
	r := l.retrieve("library", listing(expression("score >= 59", ""), ""))
	if got := strings.Join(ids(r), " "); got != "_default/d1#0 _default/d2#0 _default/d3#0 _default/d4#0" {
		t.Errorf("got %s, want all in order of id", got)
	}
	for _, c := range r.Results {
		if c.RetrievalPath != messages.PathFilter || c.Score != 0 || c.Content == "" || c.OSSKey != "oss/"+c.DocID || c.Title == "" {
			t.Errorf("got %+v, want content, title and path FILTER", c)
		}
	}
	if d := r.Diagnostics; d.Fusion != messages.PathFilter || d.Dense != nil || d.FullText != nil || d.Generation == 0 {
		t.Errorf("got diagnostics %+v, want those of no leg", d)
	}
	r = l.retrieve("library", listing(`{"filter":{"greaterThan":{"key":"score","value":59}},"rerankingConfiguration":{"numberOfResults":2},
		"searchType":["DENSE_VECTOR"],"denseVectorSearchConfiguration":{"numberOfResults":0},"outputConfiguration":{"fields":["score"],"content":false,"vector":true}}`, ""))
	if len(r.Results) != 2 || r.NextCursor == "" {
		t.Fatalf("got %d results, cursor %q; want 2 and a cursor", len(r.Results), r.NextCursor)
	}
	if c := r.Results[0]; string(c.Metadata) != `{"score":60}` || c.Content != "" || len(c.Vector) != 8 {
		t.Errorf("got metadata %s, content %q, %d dimensions; want the score, none and 8", c.Metadata, c.Content, len(c.Vector))
	}
	r = l.retrieve("library", `{"retrievalQuery":{"type":"FILTER","text":"pump"},"retrievalConfiguration":{"filterExpression":"category = 'art'"}}`)
	if documents(r) != "d4" || len(r.Diagnostics.Notes) != 1 {
		t.Errorf("with a text: got %v, notes %v; want d4 and a note", ids(r), r.Diagnostics.Notes)
	}
	if r = l.retrieve("library", listing(expression("score > 1000", ""), "")); r.Results == nil || len(r.Results) != 0 {
		t.Errorf("nothing matches: got %v, want an empty list", r.Results)
	}
	var found messages.SearchReply
	if err := l.call("library", messages.OpSearch, listing(expression("score > 90", ""), ""), &found); err != nil || len(found.Results) != 1 ||
		found.Results[0].ID != "d3#0" || found.Results[0].RetrievalPath != messages.PathFilter {
		t.Errorf("search: got %+v (%v), want d3", found.Results, err)
	}
	var batch messages.BatchReply
	if err := l.call("library", messages.OpBatch, batchOf(listing(expression("score = 60", ""), ""), listing(expression("year IS NULL", ""), "")), &batch); err != nil {
		t.Fatal(err)
	}
	if a, b := documents(batch.Results[0]), documents(batch.Results[1]); a != "d1" || b != "d4" {
		t.Errorf("batch: got %q and %q, want d1 and d4", a, b)
	}
}

func TestFilterQueriesAreRefused(t *testing.T) { // CT-60
	l := newLab(t, setup{})
	l.library(nil)
	const config = "retrievalConfiguration."
	for _, c := range []struct{ body, field string }{
		{`{"retrievalQuery":{"type":"FILTER"}}`, config + "filter"},
		{listing("{}", ""), config + "filter"},
		{listing(`{"filter":null}`, ""), config + "filter"},
		{listing(expression("score = 60", `,"scoreThreshold":0.5`), ""), config + "scoreThreshold"},
		{listing(expression("score = 60", `,"searchType":["DENSE_VECTOR"],"scoreThreshold":0`), ""), config + "scoreThreshold"},
		{listing(expression("score = 60", `,"rerankingConfiguration":{"numberOfResults":0}`), ""), config + "rerankingConfiguration.numberOfResults"},
		{listing(expression("score = 60", `,"rerankingConfiguration":{"rrfConfiguration":{"k":0}}`), ""), config + "rerankingConfiguration.rrfConfiguration.k"},
		{listing(expression("tenant = 'acme'", ""), ""), config + "filterExpression"},
		{listing(expression("score = 60", `,"outputConfiguration":{"fields":["nothing"]}`), ""), config + "outputConfiguration.fields[0]"},
		{listing(expression("score = 60", ""), `,"subspace":["x"]`), "subspace"},
		{`{"retrievalQuery":{"type":"filter"},"retrievalConfiguration":{"filterExpression":"score = 60"}}`, "retrievalQuery.type"},
	} {
		refused(t, c.body, l.call("library", messages.OpRetrieve, c.body, nil), messages.CodeValidation, c.field)
	}
	body := listing(expression("score >= 59", `,"rerankingConfiguration":{"numberOfResults":1}`), "")
	ranked := strings.Replace(body, `{"type":"FILTER"}`, `{"type":"TEXT","text":"pump"}`, 1)
	for _, c := range []struct{ body, cursor string }{
		{body, l.retrieve("library", ranked).NextCursor},
		{ranked, l.retrieve("library", body).NextCursor},
		{strings.Replace(body, "59", "58", 1), l.retrieve("library", body).NextCursor},
		{body, "AQID"},
	} {
		refused(t, c.cursor, l.call("library", messages.OpRetrieve, withCursor(c.body, c.cursor), nil), messages.CodeCursorInvalid, "cursor")
	}
}

// shelf is a knowledge base of three subspaces whose documents have several chunks, and every chunk in order.
func (l *lab) shelf(name string) (pgstore.KB, []string) {
	l.tb.Helper()
	kb := l.kb(name, func(n *pgstore.NewKB) { n.Subspaces = true })
	var all []string
	for _, sub := range []string{"a", "b", "c"} {
		for d := range 5 {
			chunks := make([]string, 1+(d*3)%4)
			for i := range chunks {
				chunks[i] = fmt.Sprintf("pump %s %d %d", sub, d, i)
				all = append(all, fmt.Sprintf("%s/d%d#%d", sub, d, i))
			}
			l.put(kb, sub, fmt.Sprintf("d%d", d), chunks...)
		}
	}
	return kb, all
}

func names(list []messages.RetrievedChunk) []string {
	return ids(messages.RetrieveReply{Results: list})
}

func TestFilterQueriesPageThroughEverything(t *testing.T) { // D-27
	l := newLab(t, setup{noEmbedder: true})
	_, all := l.shelf("shelf")
	for _, n := range []int{1, 2, 3, 7, 100} {
		body := listing(expression("of IS NOT NULL", fmt.Sprintf(`,"rerankingConfiguration":{"numberOfResults":%d}`, n)), `,"subspace":["c","a","b","nothing"]`)
		if got := names(l.follow("shelf", body, nil)); !slices.Equal(got, all) {
			t.Errorf("pages of %d: got %v, want %v", n, got, all)
		}
		first := l.retrieve("shelf", body)
		if len(first.Results) != min(n, len(all)) || (first.NextCursor != "") != (n < len(all)) {
			t.Errorf("pages of %d: the first has %d results, cursor %q", n, len(first.Results), first.NextCursor)
		}
	}
	within := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s[0] != 'b' })
	if got := names(l.retrieve("shelf", listing(expression("of IS NOT NULL", ""), `,"subspace":["b"]`)).Results); !slices.Equal(got, within) {
		t.Errorf("one subspace: got %v, want %v", got, within)
	}
}

func TestFilterQueriesCountDocumentsWhenGrouped(t *testing.T) { // D-28
	l := newLab(t, setup{noEmbedder: true})
	_, all := l.shelf("shelf")
	for _, per := range []int{1, 2, 100} {
		var want []string
		for _, c := range all {
			if n := int(c[len(c)-1] - '0'); n < per {
				want = append(want, c)
			}
		}
		for _, n := range []int{1, 4, 100} {
			body := listing(expression("of IS NOT NULL", fmt.Sprintf(`,"rerankingConfiguration":{"numberOfResults":%d}`, n)),
				fmt.Sprintf(`,"subspace":["a","b","c"],"groupBy":{"type":"document","chunksPerGroup":%d}`, per))
			first := l.retrieve("shelf", body)
			seen := map[string]bool{}
			for _, c := range first.Results {
				seen[c.Subspace+c.DocID] = true
			}
			if len(seen) != min(n, 15) {
				t.Errorf("%d a group, %d groups: the first page has %d documents", per, n, len(seen))
			}
			if got := names(l.follow("shelf", body, nil)); !slices.Equal(got, want) {
				t.Errorf("%d a group, %d groups: got %v, want %v", per, n, got, want)
			}
		}
	}
}

// What is deleted, hidden, replaced or added while somebody reads page after page neither repeats nor hides
// anything else.
func TestFilterQueriesWhileDocumentsChange(t *testing.T) { // D-27
	l := newLab(t, setup{noEmbedder: true})
	kb := l.kb("docs", nil)
	l.fill(kb, 12)
	body := listing(expression("of IS NOT NULL", `,"rerankingConfiguration":{"numberOfResults":3}`), "")
	got := names(l.follow("docs", body, func(page int) {
		switch page {
		case 1: // d00 d01 d02 are read
			l.remove(kb, "d01")
			l.remove(kb, "d04")
			l.setActive(kb, "d05", 0, messages.ChunkInactive)
			l.put(kb, messages.DefaultSubspace, "d06", "pump again", "and again")
			l.put(kb, messages.DefaultSubspace, "d00x", "pump before the place")
			l.put(kb, messages.DefaultSubspace, "d07x", "pump behind the place")
		case 2: // d03, d06#0 and d06#1 are read
			l.remove(kb, "d06")
		}
	}))
	var want []string
	for _, d := range []string{"d00#0", "d01#0", "d02#0", "d03#0", "d06#0", "d06#1", "d07#0", "d07x#0", "d08#0", "d09#0", "d10#0", "d11#0"} {
		want = append(want, "_default/"+d)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFilterQueriesFitAReply(t *testing.T) {
	l := newLab(t, setup{noEmbedder: true})
	kb := l.kb("docs", nil)
	big := strings.Repeat("pump seal ", 5000)
	var want []string
	for d := range 8 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", d), big+"one", big+"two", big+"three", big+"four", big+"five")
		for i := range 5 {
			want = append(want, fmt.Sprintf("_default/d%d#%d", d, i))
		}
	}
	for _, group := range []string{"", `,"groupBy":{"type":"document","chunksPerGroup":100}`} {
		body := listing(expression("of IS NOT NULL", `,"rerankingConfiguration":{"numberOfResults":40}`), group)
		first := l.retrieve("docs", body)
		if !first.Truncated || len(first.Results) >= len(want) || len(first.Results) < 5 {
			t.Errorf("the first page: %d results, truncated %v; want some, cut", len(first.Results), first.Truncated)
		}
		if got := names(l.follow("docs", body, nil)); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestFilterQueriesAreUnderTheMandatoryFilter(t *testing.T) { // D-15
	l := newLab(t, setup{noEmbedder: true})
	l.library(func(n *pgstore.NewKB) {
		n.Mandatory = []byte(`"tenant = '$tenant'"`)
		n.Retrieval = []byte(`{"filterExpression":"score < 95","searchType":["DENSE_VECTOR"],"scoreThreshold":0.3}`)
	})
	for configuration, want := range map[string]string{
		expression("score > 0 OR score IS NULL", ""): "d1 d2 d4", expression("NOT year = 2024", ""): "d2 d4", expression("score = 95", ""): "",
		"{}": "d1 d2 d4",
	} {
		if got := documents(l.retrieve("library", listing(configuration, ""))); got != want {
			t.Errorf("%s: got %q, want %q", configuration, got, want)
		}
	}
	refused(t, "the mandatory filter is no filter of the request", l.call("library", messages.OpRetrieve, listing(`{"filter":null}`, ""), nil),
		messages.CodeValidation, "retrievalConfiguration.filter")
}

// A document that the mandatory filter hides answers exactly as one that does not exist.
func TestHiddenDocumentsDoNotExist(t *testing.T) { // D-15
	l := newLab(t, setup{noEmbedder: true})
	kb := l.library(func(n *pgstore.NewKB) { n.Mandatory = []byte(`{"equals":{"key":"tenant","value":"$tenant"}}`) })
	l.metadata["pending"], l.metadata["theirs"] = `{"tenant":"acme"}`, `{"tenant":"other"}`
	for _, doc := range []string{"pending", "theirs"} { // accepted, not live
		if _, err := l.store.AcceptSubmit(t.Context(), l.submission(kb, messages.DefaultSubspace, doc, []string{"pump"})); err != nil {
			t.Fatal(err)
		}
	}
	asks := func(op, doc string) string {
		reply, err := l.nc.Request(messages.RPCSubject("acme", "library", op), fmt.Appendf(nil, `{"docId":%q}`, doc), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var env messages.Envelope
		if err := messages.DecodeStrict(reply.Data, &env); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(fmt.Sprint(env.Code, env.Field, env.Message, string(env.Data)), doc, "X")
	}
	for _, op := range []string{messages.OpDocGet, messages.OpDocChunks} {
		unknown := asks(op, "nobody")
		for doc, hidden := range map[string]bool{"d1": false, "d3": true, "pending": false, "theirs": true} {
			if got := asks(op, doc); (got == unknown) != hidden || hidden == strings.HasPrefix(got, string(messages.CodeSuccess)) {
				t.Errorf("%s of %s: got %s, of one that does not exist %s", op, doc, got, unknown)
			}
		}
	}
	var listed []string
	for token, pages := "", 0; pages == 0 || token != ""; pages++ {
		var list messages.DocumentList
		if err := l.call("library", messages.OpDocList, fmt.Sprintf(`{"maxResults":1,"nextToken":%q}`, token), &list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Documents {
			listed = append(listed, d.DocID)
		}
		token = list.NextToken
	}
	if got := strings.Join(listed, " "); got != "d1 d2 d4 pending" {
		t.Errorf("list: got %s, want those of the tenant", got)
	}
}

// Where the newest version and the one readers see differ, each is shown by its own metadata.
func TestVersionsAreHiddenEachByItsMetadata(t *testing.T) { // D-15
	l := newLab(t, setup{noEmbedder: true})
	kb := l.library(func(n *pgstore.NewKB) { n.Mandatory = []byte(`{"equals":{"key":"tenant","value":"$tenant"}}`) })
	submit := func(doc, metadata string) {
		t.Helper()
		l.metadata[doc] = metadata
		if a, err := l.store.AcceptSubmit(t.Context(), l.submission(kb, messages.DefaultSubspace, doc, []string{"new words"})); err != nil || a.Outcome != pgstore.Accepted {
			t.Fatalf("submit %s: %v, %v", doc, a.Outcome, err)
		}
	}
	submit("d1", `{"tenant":"other"}`) // live: ours
	submit("d3", `{"tenant":"acme"}`)  // live: theirs
	refused(t, "the newest is theirs", l.call("library", messages.OpDocGet, `{"docId":"d1"}`, nil), messages.CodeDocumentNotFound, "docId")
	var d messages.DocumentInfo
	if err := l.call("library", messages.OpDocGet, `{"docId":"d3"}`, &d); err != nil || d.Status != messages.StatusPending {
		t.Errorf("the newest is ours: got %+v (%v), want it pending", d, err)
	}
	var chunks messages.ChunkList
	if err := l.call("library", messages.OpDocChunks, `{"docId":"d1"}`, &chunks); err != nil || len(chunks.Chunks) != 1 {
		t.Errorf("the live one is ours: got %+v (%v), want its chunk", chunks, err)
	}
	if err := l.call("library", messages.OpDocChunks, `{"docId":"d3"}`, &chunks); err != nil || len(chunks.Chunks) != 0 {
		t.Errorf("the live one is theirs: got %+v (%v), want no chunk", chunks, err)
	}
}

func TestFilterLimitsAreSettings(t *testing.T) { // D-16
	cfg := setup{noEmbedder: true}
	cfg.cfg.MaxFilterCharacters, cfg.cfg.MaxFilterDepth, cfg.cfg.MaxFilterConditions, cfg.cfg.MaxFilterValues = 5000, 20, 300, 3
	l := newLab(t, cfg)
	l.library(nil)
	many := func(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }
	filters := func(characters, depth, conditions, values int) map[string]string {
		return map[string]string{
			"filterExpression": expression("score = 60"+strings.Repeat(" ", characters-10), ""),
			"filter" + strings.Repeat(".notAll[0]", depth-1) + ".notAll": `{"filter":` + strings.Repeat(`{"notAll":[`, depth) + `{"isNull":{"key":"score"}}` + strings.Repeat(`]}`, depth) + `}`,
			fmt.Sprintf("filter.orAll[%d].isNull", conditions-1):         `{"filter":{"orAll":[` + many(conditions, `{"isNull":{"key":"score"}}`) + `]}}`,
			"filter.in.value": `{"filter":{"in":{"key":"score","value":[` + many(values, "1") + `]}}}`,
		}
	}
	check := func(what string, most [4]int) {
		t.Helper()
		for _, configuration := range filters(most[0], most[1], most[2], most[3]) {
			l.retrieve("library", listing(configuration, ""))
		}
		for field, configuration := range filters(most[0]+1, most[1]+1, most[2]+1, most[3]+1) {
			refused(t, what+": "+clipped(configuration), l.call("library", messages.OpRetrieve, listing(configuration, ""), nil), messages.CodeValidation, "retrievalConfiguration."+field)
		}
	}
	check("server", [4]int{5000, 20, 300, 3})
	tighten := func(limits string) {
		t.Helper()
		if _, err := l.store.UpdateKB(t.Context(), "acme", "library", pgstore.KBUpdate{SetRetrieval: true, Retrieval: []byte(`{"filterLimits":` + limits + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	tighten(`{"depth":2,"conditions":4000,"expressionCharacters":40}`) // a larger one raises nothing
	check("knowledge base", [4]int{40, 2, 300, 3})
	tighten(`{"values":2}`)
	check("knowledge base", [4]int{5000, 20, 300, 2})
	refused(t, "in a request", l.call("library", messages.OpRetrieve, listing(expression("score = 60", `,"filterLimits":{"depth":1}`), ""), nil),
		messages.CodeValidation, "retrievalConfiguration.filterLimits")
}
