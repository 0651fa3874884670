package retriever_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestSimpleSyntax(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	for i, text := range []string{"pump seal", "seal pump", "pump and seal", "rotor M120", "rotor M12x30 pump", "產品手冊", "gasket"} {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", i), text)
	}
	docs := func(text, more string) []string {
		t.Helper()
		out := []string{}
		for _, r := range l.retrieve("docs", ask(text, `{"fullTextSearchConfiguration":{"syntax":"simple"}`+more+`}`)).Results {
			out = append(out, r.DocID)
		}
		slices.Sort(out)
		return out
	}
	const text = `,"searchType":["FULL_TEXT"]`
	for _, c := range []struct {
		text string
		full []string // by the words alone
		both []string // with the dense leg, which lists whatever matches
	}{
		{`"pump seal"`, []string{"d0"}, []string{"d0"}},
		{`+pumps +seals`, []string{"d0", "d1", "d2"}, []string{"d0", "d1", "d2"}},
		{`pump -seal`, []string{"d4"}, []string{"d3", "d4", "d5", "d6"}},
		{`pump -"pump seal"`, []string{"d1", "d2", "d4"}, []string{"d1", "d2", "d3", "d4", "d5", "d6"}},
		{`m12*`, []string{"d3", "d4"}, []string{"d0", "d1", "d2", "d3", "d4", "d5", "d6"}},
		{`+m12* +pump`, []string{"d4"}, []string{"d4"}},
		{`rotor -m12*`, []string{}, []string{"d0", "d1", "d2", "d5", "d6"}},
		{`"产品手册"`, []string{"d5"}, []string{"d5"}},
		{`+nothing pump`, []string{}, []string{}},
	} {
		if got := docs(c.text, text); !slices.Equal(got, c.full) {
			t.Errorf("%s: got %v, want %v", c.text, got, c.full)
		}
		if got := docs(c.text, ""); !slices.Equal(got, c.both) {
			t.Errorf("%s, both legs: got %v, want %v", c.text, got, c.both)
		}
		if got := docs(c.text, `,"searchType":["DENSE_VECTOR"]`); !slices.Equal(got, c.both) {
			t.Errorf("%s, dense leg: got %v, want %v", c.text, got, c.both)
		}
	}
	for _, bad := range []string{`-pump`, `"pump`, `a*`} {
		refused(t, bad, l.call("docs", messages.OpRetrieve, ask(bad, `{"fullTextSearchConfiguration":{"syntax":"simple"}}`), nil), messages.CodeValidation, "retrievalQuery.text")
	}
	refused(t, "syntax", l.call("docs", messages.OpRetrieve, ask("x", `{"fullTextSearchConfiguration":{"syntax":"lucene"}}`), nil),
		messages.CodeValidation, "retrievalConfiguration.fullTextSearchConfiguration.syntax")
	if got := l.retrieve("docs", ask(`-pump`, `{"searchType":["FULL_TEXT"]}`)); len(got.Results) != 4 {
		t.Errorf("plain: got %v, want signs to mean nothing", ids(got))
	}
}

func TestInactiveChunksAreFoundNowhere(t *testing.T) { // CT-47
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.vectors = map[string][]float32{"flat pump": make([]float32, 8)}
	l.put(kb, messages.DefaultSubspace, "a", "pump seal", "valve")
	l.put(kb, messages.DefaultSubspace, "flat", "flat pump")
	find := func(what string, want ...string) {
		t.Helper()
		for _, c := range []string{`{"searchType":["DENSE_VECTOR"]}`, `{"searchType":["FULL_TEXT"]}`, `{}`} {
			got := ids(l.retrieve("docs", ask("pump", c)))
			if slices.Contains(got, "_default/a#0") != slices.Contains(want, "a#0") || c != `{"searchType":["DENSE_VECTOR"]}` && slices.Contains(got, "_default/flat#0") != slices.Contains(want, "flat#0") {
				t.Errorf("%s, %s: got %v, want of the two %v", what, c, got, want)
			}
		}
	}
	find("all active", "a#0", "flat#0")
	l.setActive(kb, "a", 0, messages.ChunkInactive)
	find("inactive", "flat#0")
	l.setActive(kb, "a", 0, messages.ChunkActive)
	find("active again", "a#0", "flat#0")

	alone := l.kb("alone", nil) // nothing has a direction: the fallback answers
	l.put(alone, messages.DefaultSubspace, "flat", "flat pump")
	fallback := func() int { return len(l.retrieve("alone", ask("pump", `{"searchType":["DENSE_VECTOR"]}`)).Results) }
	if n := fallback(); n != 1 {
		t.Errorf("fallback: got %d results, want 1", n)
	}
	l.setActive(alone, "flat", 0, messages.ChunkInactive)
	if n := fallback(); n != 0 {
		t.Errorf("fallback, inactive: got %d results, want none", n)
	}
	l.put(alone, messages.DefaultSubspace, "flat", "flat pump", "more")
	if n := len(l.retrieve("alone", ask("flat", `{"searchType":["FULL_TEXT"]}`)).Results); n != 1 {
		t.Errorf("a new version: got %d results, want it active", n)
	}
}
