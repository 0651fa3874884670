package client

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// requestOf is what a builder sends.
func requestOf(t *testing.T, b *SearchBuilder) string {
	t.Helper()
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// treeOf is the canonical form of what a builder asks for, "" for nothing.
func treeOf(t *testing.T, b interface {
	FilterJSON() (json.RawMessage, error)
},
) string {
	t.Helper()
	raw, err := b.FilterJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRequestsOfABuilder(t *testing.T) {
	t.Parallel()
	const dense4 = `"retrievalConfiguration":{"searchType":["DENSE_VECTOR"],"denseVectorSearchConfiguration":{"numberOfResults":4},"rerankingConfiguration":{"numberOfResults":4}`
	for _, c := range []struct {
		what string
		b    *SearchBuilder
		want string
	}{
		{"text alone", NewSearch().Text("bread"), `{"retrievalQuery":{"type":"TEXT","text":"bread"},` + dense4 + `}}`},
		{"vector alone", NewSearch().Vector([]float32{1, 0.5}), `{"retrievalQuery":{"type":"TEXT","vector":[1,0.5]},` + dense4 + `}}`},
		{
			"everything",
			NewSearch().Text("bread").MaxResults(7).MinScore(0.65).Subspace("s1").OutputFields("title").OutputVector(true).Eq("year", 2024),
			`{"subspace":["s1"],"retrievalQuery":{"type":"TEXT","text":"bread"},"retrievalConfiguration":{"searchType":["DENSE_VECTOR"],` +
				`"denseVectorSearchConfiguration":{"numberOfResults":7},"rerankingConfiguration":{"numberOfResults":7},"scoreThreshold":0.65,` +
				`"outputConfiguration":{"fields":["title"],"vector":true},"filter":{"equals":{"key":"year","value":2024}}}}`,
		},
		{
			"both legs", NewSearch().Text("bread").SearchTypes(messages.DenseVector, messages.FullText),
			`{"retrievalQuery":{"type":"TEXT","text":"bread"},"retrievalConfiguration":{"searchType":["DENSE_VECTOR","FULL_TEXT"],` +
				`"denseVectorSearchConfiguration":{"numberOfResults":4},"fullTextSearchConfiguration":{"numberOfResults":4},"rerankingConfiguration":{"numberOfResults":4}}}`,
		},
		{
			"conditions alone", NewSearch().Text("not used").WithVector(false).Eq("a", 1),
			`{"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"rerankingConfiguration":{"numberOfResults":4},"filter":{"equals":{"key":"a","value":1}}}}`,
		},
	} {
		if got := requestOf(t, c.b); got != c.want {
			t.Errorf("%s: got\n%s, want\n%s", c.what, got, c.want)
		}
	}
}

func TestWrongSettersSayAtOnceAndChangeNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		do   func(*SearchBuilder) *SearchBuilder
	}{
		{"minScore below", func(b *SearchBuilder) *SearchBuilder { return b.MinScore(-0.1) }},
		{"minScore above", func(b *SearchBuilder) *SearchBuilder { return b.MinScore(1.1) }},
		{"minScore NaN", func(b *SearchBuilder) *SearchBuilder { return b.MinScore(math.NaN()) }},
		{"maxResults 0", func(b *SearchBuilder) *SearchBuilder { return b.MaxResults(0) }},
		{"blank text", func(b *SearchBuilder) *SearchBuilder { return b.Text(" \t") }},
		{"NUL in text", func(b *SearchBuilder) *SearchBuilder { return b.Text("a\x00") }},
		{"empty vector", func(b *SearchBuilder) *SearchBuilder { return b.Vector(nil) }},
		{"zero vector", func(b *SearchBuilder) *SearchBuilder { return b.Vector([]float32{0, 0}) }},
		{"NaN in vector", func(b *SearchBuilder) *SearchBuilder { return b.Vector([]float32{float32(math.NaN())}) }},
		{"infinity in vector", func(b *SearchBuilder) *SearchBuilder { return b.Vector([]float32{float32(math.Inf(1))}) }},
		{"blank output field", func(b *SearchBuilder) *SearchBuilder { return b.OutputFields("a", " ") }},
		{"bad subspace", func(b *SearchBuilder) *SearchBuilder { return b.Subspace("A.B") }},
		{"no search type", func(b *SearchBuilder) *SearchBuilder { return b.SearchTypes() }},
		{"unknown search type", func(b *SearchBuilder) *SearchBuilder { return b.SearchTypes("dense") }},
		{"empty in", func(b *SearchBuilder) *SearchBuilder { return b.In("a", nil) }},
		{"null in nin", func(b *SearchBuilder) *SearchBuilder { return b.Nin("a", []any{1, nil}) }},
		{"open between", func(b *SearchBuilder) *SearchBuilder { return b.Between("a", 1, nil) }},
		{"between of two kinds", func(b *SearchBuilder) *SearchBuilder { return b.Between("a", 1, "x") }},
		{"blank key", func(b *SearchBuilder) *SearchBuilder { return b.Eq("  ", 1) }},
		{"gt nil", func(b *SearchBuilder) *SearchBuilder { return b.Gt("a", nil) }},
		{"binary NOT", func(b *SearchBuilder) *SearchBuilder { return b.Eq("a", 1, "NOT") }},
		{"two connectors", func(b *SearchBuilder) *SearchBuilder { return b.Eq("a", 1, And, Or) }},
		{"nil group", func(b *SearchBuilder) *SearchBuilder { return b.Group(nil) }},
		{"fault in a group", func(b *SearchBuilder) *SearchBuilder {
			return b.OrGroup(func(c *Conditions) { c.Eq("fine", 1).Gt("a", nil) })
		}},
		{"nil condition", func(b *SearchBuilder) *SearchBuilder { return b.SetCondition(nil) }},
		{"bad expression", func(b *SearchBuilder) *SearchBuilder { return b.Condition("bad ==") }},
		{"bad expression in place", func(b *SearchBuilder) *SearchBuilder { return b.SetConditionExpression("") }},
	} {
		b := NewSearch().Text("bread").MinScore(0.5).Eq("tenant", "t1")
		before := requestOf(t, b)
		c.do(b)
		var e *messages.Error
		if err := b.Err(); !errors.As(err, &e) || e.Code != messages.CodeValidation {
			t.Errorf("%s: got %v at the setter, want VALIDATION_ERROR", c.what, err)
		}
		if _, err := b.Build(); err == nil {
			t.Errorf("%s: the request is built all the same", c.what)
		}
		if _, err := b.FilterJSON(); err == nil {
			t.Errorf("%s: the filter is given all the same", c.what)
		}
		if _, err := b.Search(t.Context(), Stub{}, nil); err == nil {
			t.Errorf("%s: it searches all the same", c.what)
		}
		if err := b.TakeErr(); err == nil || b.Err() != nil {
			t.Errorf("%s: the fault is not taken: %v", c.what, b.Err())
		}
		if after := requestOf(t, b); after != before {
			t.Errorf("%s: %s became %s", c.what, before, after)
		}
	}
}

func TestErrorsOfExpressionsHaveTheirPosition(t *testing.T) {
	t.Parallel()
	for _, set := range []func(*SearchBuilder) *SearchBuilder{
		func(b *SearchBuilder) *SearchBuilder { return b.Condition("a = 1 AND") },
		func(b *SearchBuilder) *SearchBuilder { return b.SetConditionExpression("a = 1 AND") },
	} {
		b := NewSearch().Eq("x", 1)
		var at *filter.ExpressionError
		if err := set(b).Err(); !errors.As(err, &at) || at.Pos != 9 {
			t.Errorf("got %v, want an error at 9", err)
		}
	}
}

func TestWhatOnlyBuildCanSee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		b    *SearchBuilder
		code messages.Code
		at   string
	}{
		{"nothing to look for", NewSearch(), messages.CodeValidation, "text"},
		{"a vector for words", NewSearch().Vector([]float32{1}).SearchTypes(messages.FullText), messages.CodeValidation, "text"},
		{"no condition", NewSearch().WithVector(false), messages.CodeValidation, "condition"},
		{"a score without scores", NewSearch().WithVector(false).Eq("a", 1).MinScore(0.5), messages.CodeValidation, "minScore"},
		{"a similarity of words", NewSearch().Text("x").SearchTypes(messages.FullText).MinScore(0.5), messages.CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
	} {
		_, err := c.b.Build()
		wantCode(t, c.what, err, c.code, c.at)
	}
}

func TestConditionsOfABuilder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		b    *SearchBuilder
		tree string
		text string
	}{
		{"none", NewSearch(), "", ""},
		{
			"a chain",
			NewSearch().Eq("a", 1).Ne("b", "x").Gt("c", 1.5).Ge("d", 2).Lt("e", 3).Le("f", 4).In("g", []any{1, 2}).Nin("h", []any{"y"}).Between("i", 5, 6),
			`{"andAll":[{"equals":{"key":"a","value":1}},{"notEquals":{"key":"b","value":"x"}},{"greaterThan":{"key":"c","value":1.5}},` +
				`{"greaterThanOrEquals":{"key":"d","value":2}},{"lessThan":{"key":"e","value":3}},{"lessThanOrEquals":{"key":"f","value":4}},` +
				`{"in":{"key":"g","value":[1,2]}},{"notIn":{"key":"h","value":["y"]}},` +
				`{"andAll":[{"greaterThanOrEquals":{"key":"i","value":5}},{"lessThanOrEquals":{"key":"i","value":6}}]}]}`,
			`(a = 1 AND b != 'x' AND c > 1.5 AND d >= 2 AND e < 3 AND f <= 4 AND g IN (1, 2) AND h NOT IN ('y') AND (i >= 5 AND i <= 6))`,
		},
		{
			"a group",
			NewSearch().Eq("tenant", "t1").Group(func(c *Conditions) { c.Eq("visibility", "public").Eq("owner", "u", Or) }),
			`{"andAll":[{"equals":{"key":"tenant","value":"t1"}},{"orAll":[{"equals":{"key":"visibility","value":"public"}},{"equals":{"key":"owner","value":"u"}}]}]}`,
			`(tenant = 't1' AND (visibility = 'public' OR owner = 'u'))`,
		},
		{
			"groups in groups",
			NewSearch().Eq("a", 1).OrGroup(func(c *Conditions) { c.IsNull("b").NotGroup(func(c *Conditions) { c.IsNotNull("d") }) }),
			`{"orAll":[{"equals":{"key":"a","value":1}},{"andAll":[{"isNull":{"key":"b"}},{"notAll":[{"isNotNull":{"key":"d"}}]}]}]}`,
			`(a = 1 OR (b IS NULL AND NOT d IS NOT NULL))`,
		},
		{"an empty group", NewSearch().Eq("a", 1).OrGroup(func(*Conditions) {}), `{"equals":{"key":"a","value":1}}`, `a = 1`},
		{
			"a flat chain",
			NewSearch().Eq("category", "science").Gt("score", 90, Or).Eq("year", 2026),
			`{"orAll":[{"equals":{"key":"category","value":"science"}},{"andAll":[{"greaterThan":{"key":"score","value":90}},{"equals":{"key":"year","value":2026}}]}]}`,
			`(category = 'science' OR (score > 90 AND year = 2026))`,
		},
		{"a negated first condition", NewSearch().Eq("a", 1, AndNot), `{"notAll":[{"equals":{"key":"a","value":1}}]}`, `NOT a = 1`},
		{
			"an expression is a group", NewSearch().Condition("a = 1 OR b = 2").Eq("tenant", "t1"),
			`{"andAll":[{"orAll":[{"equals":{"key":"a","value":1}},{"equals":{"key":"b","value":2}}]},{"equals":{"key":"tenant","value":"t1"}}]}`,
			`((a = 1 OR b = 2) AND tenant = 't1')`,
		},
		{
			"an expression joined by OR", NewSearch().Eq("a", 1).Condition("b = 2 AND c = 3", Or),
			`{"orAll":[{"equals":{"key":"a","value":1}},{"andAll":[{"equals":{"key":"b","value":2}},{"equals":{"key":"c","value":3}}]}]}`,
			`(a = 1 OR (b = 2 AND c = 3))`,
		},
		{"replaced by an expression", NewSearch().Eq("a", 1).SetConditionExpression("b = 2"), `{"equals":{"key":"b","value":2}}`, `b = 2`},
		{"replaced by a filter", NewSearch().Eq("a", 1).SetCondition(filter.NoneOf(ready(t, "b = 2"))), `{"notAll":[{"equals":{"key":"b","value":2}}]}`, `NOT b = 2`},
		{"null is absence", NewSearch().Eq("metadata.a", nil).Ne("b", nil), `{"andAll":[{"isNull":{"key":"a"}},{"isNotNull":{"key":"b"}}]}`, `(a IS NULL AND b IS NOT NULL)`},
	} {
		if err := c.b.Err(); err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got := treeOf(t, c.b); got != c.tree {
			t.Errorf("%s: got %s, want %s", c.what, got, c.tree)
		}
		if got, err := c.b.Expression(); err != nil || got != c.text {
			t.Errorf("%s: got %s, %v, want %s", c.what, got, err, c.text)
		}
	}
}

func ready(t *testing.T, expression string) filter.Filter {
	t.Helper()
	f, err := filter.ParseExpression("condition", expression, filter.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestConditionsWithoutAnExpression(t *testing.T) {
	t.Parallel()
	for _, b := range []*SearchBuilder{NewSearch().StartsWith("a", "x"), NewSearch().Contains("a", "x"), NewSearch().ListContains("a", "x")} {
		_, err := b.Expression()
		var e *messages.Error
		if !errors.As(err, &e) || e.Code != messages.CodeNotSupported || treeOf(t, b) == "" {
			t.Errorf("got %v, want NOT_SUPPORTED for the text alone", err)
		}
	}
}

func TestABuilderSharesNothing(t *testing.T) {
	t.Parallel()
	v, names := []float32{1, 2}, []string{"a", "b"}
	b := NewSearch().Vector(v).OutputFields(names...)
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := requestOf(t, b)
	v[0], names[0], r.Query.Vector[1], r.Configuration.Output.Fields[1] = 9, "changed", 9, "changed"
	*r.Configuration.Reranking.NumberOfResults = 99
	if after := requestOf(t, b); after != before || strings.Contains(after, "changed") {
		t.Errorf("%s became %s", before, after)
	}
}
