package lexical

import (
	"fmt"
	"strings"
	"testing"
)

func TestStopWordsOnlyCountWhenThereIsNothingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"to be or not to be": "to:2 be:2 or:1 not:1",
		"what is the state":  "state:1",
		"The Who":            "the:1 who:1",
	} {
		q := lex1(t).Query(text)
		if got := listed(q.Terms); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if got := q.StopOnly; got != !strings.Contains(want, "state") {
			t.Errorf("%q: got StopOnly %t", text, got)
		}
	}
}

func TestEmptyQueryHasNoTerms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  ", "?!", "\xff\x00"} {
		if q := lex1(t).Query(text); q.Terms != nil || q.Second != nil || q.StopOnly || q.Truncated {
			t.Errorf("%q: got %+v, want the zero value", text, q)
		}
	}
}

func TestWeightsOfOneTermAddUp(t *testing.T) {
	t.Parallel()
	q := lex1(t).Query("foo_bar foo FOO foo_baz")
	if got, want := listed(q.Terms), "foo_bar:1 foo:2.6 bar:0.3 foo_baz:1 baz:0.3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if q.Terms[1].Kind != Word {
		t.Errorf("foo: got kind %s, want that of its heaviest occurrence, word", q.Terms[1].Kind)
	}
}

func TestLoneCharacterIsSearchedAtOnce(t *testing.T) {
	t.Parallel()
	q := lex1(t).Query("库 数据")
	if got, want := listed(q.Terms), "库:1 数据:1"; got != want {
		t.Errorf("first pass: got %s, want %s", got, want)
	}
	if got, want := listed(q.Second), "数:1 据:1"; got != want {
		t.Errorf("second pass: got %s, want %s", got, want)
	}
}

func TestQueryKeepsSoManyTerms(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range MaxQueryTerms + 1 {
		fmt.Fprintf(&b, "w%dx ", i)
	}
	q := lex1(t).Query(b.String() + " w0x")
	if len(q.Terms) != MaxQueryTerms || !q.Truncated || q.Terms[0].Weight != 2 {
		t.Errorf("got %d terms, truncated %t, first weight %g, want %d, true, 2", len(q.Terms), q.Truncated, q.Terms[0].Weight, MaxQueryTerms)
	}
}

func listed(terms []QueryTerm) string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = fmt.Sprintf("%s:%.3g", t.Term, t.Weight)
	}
	return strings.Join(out, " ")
}

// TestExactIdentifierWins ranks documents that differ by an identifier only, each among neighbours that hold
// the same parts in another order or number.
func TestExactIdentifierWins(t *testing.T) {
	t.Parallel()
	docs := []string{
		"The release v1.27.3-rc.1 fixes the scheduler.", "The release v1.27.3 of rc 1 fixes the scheduler.",
		"Written in C++ for speed.", "Written in C for speed.", "Written in C# for speed.", "Runs on .NET for speed.",
		"Runs on the net for speed.", "The model gpt-4o answers.", "The model gpt 4 o answers.", "The model 4o by gpt answers.",
		"Call foo_bar.baz to close.", "Call foo with bar and baz to close.", "Due on 2025-01-02 at noon.",
		"Due on 2025-02-01 at noon.", "Send an e-mail today.", "Put mail in slot e today.", "The ERR_CONNECTION_REFUSED code.",
		"The code of a connection refused err.", "See CVE-2021-44228 there.", "See CVE 44228 of 2021 there.",
	}
	var records []record
	for _, d := range docs {
		records = append(records, record{ID: d, Text: d})
	}
	a := lex1(t)
	index := newBM25(a, records)
	for query, want := range map[string]int{
		"v1.27.3-rc.1": 0, "c++": 2, "c#": 4, ".net": 5, "gpt-4o": 7, "foo_bar.baz": 10, "2025-01-02": 12,
		"2025-02-01": 13, "e-mail": 14, "ERR_CONNECTION_REFUSED": 16, "cve-2021-44228": 18,
	} {
		hits := index.rank(a.Query(query).Terms)
		if len(hits) == 0 || hits[0].doc != want {
			t.Errorf("%s: got %v, want %q first", query, hits, docs[want])
		}
	}
}
