package retriever_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func groupedAsk(text, configuration, group string) string {
	return strings.TrimSuffix(ask(text, configuration), "}") + `,"groupBy":` + group + `}`
}

func TestGroupsAreDocuments(t *testing.T) { // D-28
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	for d := range 8 {
		var chunks []string
		for c := range 5 {
			chunks = append(chunks, fmt.Sprintf("pump number%d seal%d", d*5+c, (d+c)%4))
		}
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", d), chunks...)
	}
	const n = `{"denseVectorSearchConfiguration":{"numberOfResults":40},"fullTextSearchConfiguration":{"numberOfResults":40},"rerankingConfiguration":{"numberOfResults":%d}}`
	plain := l.retrieve("docs", ask("pump seal1 number7", fmt.Sprintf(n, 100))).Results
	for _, size := range []int{1, 2, 7} {
		var want []string
		var docs []string
		for _, r := range plain { // documents in the order of their best chunks
			if !slices.Contains(docs, r.DocID) {
				docs = append(docs, r.DocID)
			}
		}
		for _, d := range docs {
			left := size
			for _, r := range plain {
				if r.DocID == d && left > 0 {
					want = append(want, fmt.Sprintf("%s#%d %v", r.DocID, r.ChunkID, r.Score))
					left--
				}
			}
		}
		group := fmt.Sprintf(`{"type":"document","chunksPerGroup":%d}`, size)
		got := func(results []messages.RetrievedChunk) (out []string) {
			for _, r := range results {
				out = append(out, fmt.Sprintf("%s#%d %v", r.DocID, r.ChunkID, r.Score))
			}
			return out
		}
		r := l.retrieve("docs", groupedAsk("pump seal1 number7", fmt.Sprintf(n, 3), group))
		if first := 3 * min(size, 5); !slices.Equal(got(r.Results), want[:first]) || r.NextCursor == "" {
			t.Errorf("%d a document: got %v, want three documents: %v", size, got(r.Results), want[:first])
		}
		if all := got(l.follow("docs", groupedAsk("pump seal1 number7", fmt.Sprintf(n, 3), group), nil)); !slices.Equal(all, want) {
			t.Errorf("%d a document, in pages: got %v, want %v", size, all, want)
		}
	}
	if r := l.retrieve("docs", groupedAsk("pump", `{"denseVectorSearchConfiguration":{"numberOfResults":2},"fullTextSearchConfiguration":{"numberOfResults":2}}`, `{"type":"document"}`)); len(r.Results) > 4 {
		t.Errorf("fewer documents among the candidates are not topped up: got %d", len(r.Results))
	}
	for group, field := range map[string]string{
		`{}`: "groupBy.type", `{"type":"chunk"}`: "groupBy.type", `{"type":"document","chunksPerGroup":-1}`: "groupBy.chunksPerGroup",
		`{"type":"document","chunksPerGroup":101}`: "groupBy.chunksPerGroup", `{"type":"document","n":1}`: "groupBy.n", `[]`: "groupBy",
	} {
		refused(t, group, l.call("docs", messages.OpRetrieve, groupedAsk("pump", "", group), nil), messages.CodeValidation, field)
	}
}

func TestHighlights(t *testing.T) { // D-28
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.put(kb, messages.DefaultSubspace, "a", "😀 Größe der Pumps: the pump seal, 新型水泵。")
	marks := func(body string) (out []string) {
		t.Helper()
		r := l.retrieve("docs", strings.TrimSuffix(body, "}")+`,"highlight":true}`)
		if len(r.Results) != 1 {
			t.Fatalf("%s: got %d results, want one", body, len(r.Results))
		}
		content := []rune("😀 Größe der Pumps: the pump seal, 新型水泵。")
		for _, h := range r.Results[0].Highlights {
			if h.Text != string(content[h.Start:h.End]) {
				t.Errorf("%s: piece %+v is not that part of the content", body, h)
			}
			for _, m := range h.Marks {
				out = append(out, string(content[m.Start:m.End]))
			}
		}
		return out
	}
	for body, want := range map[string][]string{
		ask("pump the 水泵", ""): {"Pumps", "pump", "水泵"},
		ask("gasket", ""):      nil,
		ask("pump", `{"outputConfiguration":{"content":false}}`):                              {"Pumps", "pump"},
		ask(`"pump seal" größ*`, `{"fullTextSearchConfiguration":{"syntax":"simple"}}`):       {"Größe", "Pumps", "pump seal"},
		ask("größe", `{"searchType":["DENSE_VECTOR"]}`):                                       {"Größe"},
		vectorAsk(first(8), "", `{"searchType":["DENSE_VECTOR"]}`):                            nil,
		vectorAsk(first(8), "pump -x", `{"fullTextSearchConfiguration":{"syntax":"simple"}}`): {"Pumps", "pump"},
	} {
		if got := marks(body); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	if r := l.retrieve("docs", ask("pump", "")); r.Results[0].Highlights != nil {
		t.Error("highlights that nobody asked for")
	}
}

func TestOutput(t *testing.T) { // CT-61 over the wire, D-23, CT-106
	l := newLab(t, setup{})
	kb := l.kb("docs", func(n *pgstore.NewKB) {
		n.Schema = append(n.Schema, messages.MetadataField{Name: "title", Type: messages.TypeString})
	})
	l.put(kb, messages.DefaultSubspace, "a", "pump")
	for c, want := range map[string]string{
		`{}`: `{"of":"a"}`, `{"fields":["of"]}`: `{"of":"a"}`, `{"fields":[]}`: `{}`, `{"fields":["title","id","docId","chunkId","content"]}`: `{}`,
		`{"fields":null}`: `{"of":"a"}`,
	} {
		r := l.retrieve("docs", ask("pump", `{"outputConfiguration":`+c+`}`)).Results[0]
		if string(r.Metadata) != want || r.DocID != "a" || r.Content != "pump" || r.Vector != nil {
			t.Errorf("%s: got %+v with %s, want %s, ids, content and no vector", c, r, r.Metadata, want)
		}
	}
	r := l.retrieve("docs", ask("pump", `{"outputConfiguration":{"vector":true,"content":false}}`)).Results[0]
	if want := vectorOf("pump", 8); r.Content != "" || len(r.Vector) != 8 || r.Vector[0] != want[0] {
		t.Errorf("vector without content: got %q, %v, want %v", r.Content, r.Vector, want)
	}
	const field = "retrievalConfiguration.outputConfiguration.fields"
	for c, at := range map[string]string{`{"fields":["of","nothing"]}`: field + "[1]", `{"fields":["owner"]}`: field + "[0]", `{"fields":"of"}`: field} {
		refused(t, c, l.call("docs", messages.OpRetrieve, ask("pump", `{"outputConfiguration":`+c+`}`), nil), messages.CodeValidation, at)
	}
}
