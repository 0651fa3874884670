package config_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(t *testing.T, text string) *messages.RetrievalConfiguration {
	t.Helper()
	if text == "" {
		return nil
	}
	c := new(messages.RetrievalConfiguration)
	if err := messages.DecodeStrict(json.RawMessage(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequestOverKnowledgeBaseOverSystem(t *testing.T) {
	t.Parallel()
	both := fusion.Legs{Dense: true, Text: true}
	weight := fusion.Config{Method: fusion.Weight, DenseWeight: 0.7, TextWeight: 0.3, K: 60, Legs: both, Limit: 20}
	rrf := fusion.Config{Method: fusion.RRF, DenseWeight: 1, TextWeight: 1, K: 60, Legs: both, Limit: 20}
	with := func(c fusion.Config, change func(*fusion.Config)) fusion.Config { change(&c); return c }
	for name, c := range map[string]struct {
		index       messages.IndexType
		kb, request string
		want        config.Settings
	}{
		"nothing given": {messages.IndexTypeHybrid, "", "", config.Settings{DenseLimit: 20, TextLimit: 20, K1: 1.2, B: 0.75, Fusion: weight}},
		"every leaf on its own": {
			messages.IndexTypeHybrid,
			`{"denseVectorSearchConfiguration":{"numberOfResults":7},"fullTextSearchConfiguration":{"k1":2},"rerankingConfiguration":{"type":"RRF","numberOfResults":5,"rrfConfiguration":{"k":20,"denseVectorSearchWeight":3}}}`,
			`{"fullTextSearchConfiguration":{"numberOfResults":9},"rerankingConfiguration":{"rrfConfiguration":{"fullTextSearchWeight":0.5}}}`,
			config.Settings{DenseLimit: 7, TextLimit: 9, K1: 2, B: 0.75, Fusion: with(rrf, func(f *fusion.Config) { f.DenseWeight, f.TextWeight, f.K, f.Limit = 3, 0.5, 20, 5 })},
		},
		"type alone replaced": {
			messages.IndexTypeHybrid, `{"rerankingConfiguration":{"type":"RRF","weightConfiguration":{"denseVectorSearchWeight":0.5}}}`,
			`{"rerankingConfiguration":{"type":"WEIGHT"}}`,
			config.Settings{DenseLimit: 20, TextLimit: 20, K1: 1.2, B: 0.75, Fusion: with(weight, func(f *fusion.Config) { f.DenseWeight = 0.5 })},
		},
		"null is absent": {
			messages.IndexTypeHybrid, "", `{"searchType":null,"rerankingConfiguration":{"numberOfResults":null}}`,
			config.Settings{DenseLimit: 20, TextLimit: 20, K1: 1.2, B: 0.75, Fusion: weight},
		},
		"the index decides": {messages.IndexTypeVector, "", "", config.Settings{
			DenseLimit: 20, TextLimit: 20, K1: 1.2, B: 0.75,
			Fusion: with(weight, func(f *fusion.Config) { f.Legs, f.DenseWeight, f.TextWeight = fusion.Legs{Dense: true}, 1, 1 }),
		}},
		"a leg alone is not weighed": {
			messages.IndexTypeHybrid, "", `{"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"weightConfiguration":{"denseVectorSearchWeight":0}}}`,
			config.Settings{DenseLimit: 20, TextLimit: 20, K1: 1.2, B: 0.75, Fusion: with(weight, func(f *fusion.Config) { f.Legs, f.DenseWeight, f.TextWeight = fusion.Legs{Dense: true}, 1, 1 })},
		},
		"a count of 0 switches a leg off": {
			messages.IndexTypeHybrid, "", `{"denseVectorSearchConfiguration":{"numberOfResults":0}}`,
			config.Settings{DenseLimit: 0, TextLimit: 20, K1: 1.2, B: 0.75, Fusion: with(weight, func(f *fusion.Config) { f.Legs = fusion.Legs{Text: true} })},
		},
	} {
		got, err := config.Resolve(config.Server{Limits: messages.DefaultRetrieveLimits()}, c.index, read(t, c.kb), read(t, c.request))
		c.want.Limits, c.want.Output.Content = messages.DefaultRetrieveLimits(), true
		c.want.Fallback = !c.want.Fusion.Active().Text
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v (%v)\nwant %+v", name, got, err, c.want)
		}
	}
}

func TestNothingLeftToRun(t *testing.T) {
	t.Parallel()
	for request, field := range map[string]string{
		`{"denseVectorSearchConfiguration":{"numberOfResults":0},"fullTextSearchConfiguration":{"numberOfResults":0}}`:                         "retrievalConfiguration",
		`{"searchType":["FULL_TEXT"],"fullTextSearchConfiguration":{"numberOfResults":0}}`:                                                     "retrievalConfiguration",
		`{"denseVectorSearchConfiguration":{"numberOfResults":0},"rerankingConfiguration":{"weightConfiguration":{"fullTextSearchWeight":0}}}`: "retrievalConfiguration",
	} {
		_, err := config.Resolve(config.Server{Limits: messages.DefaultRetrieveLimits()}, messages.IndexTypeHybrid, nil, read(t, request))
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field != field {
			t.Errorf("%s: got %v, want VALIDATION_ERROR of %s", request, err, field)
		}
	}
	kb := read(t, `{"rerankingConfiguration":{"weightConfiguration":{"denseVectorSearchWeight":0}}}`)
	_, err := config.Resolve(config.Server{Limits: messages.DefaultRetrieveLimits()}, messages.IndexTypeHybrid, kb, read(t, `{"rerankingConfiguration":{"weightConfiguration":{"fullTextSearchWeight":0}}}`))
	if e, ok := messages.AsError(err); !ok || e.Field != "retrievalConfiguration.rerankingConfiguration.weightConfiguration" {
		t.Errorf("weights that are 0 together: got %v, want a VALIDATION_ERROR of the weights", err)
	}
}

func TestDefaultsThatTheServerNoLongerTakes(t *testing.T) {
	t.Parallel()
	kb := read(t, `{"rerankingConfiguration":{"numberOfResults":500}}`)
	server := config.Server{Limits: messages.TablestoreRetrieveLimits()}
	_, search := config.Resolve(server, messages.IndexTypeHybrid, kb, nil)
	_, list := config.ResolveFilter(server, kb, nil)
	for _, err := range []error{search, list} {
		if e, ok := messages.AsError(err); !ok || e.Field != "retrievalConfiguration.rerankingConfiguration.numberOfResults" || !strings.Contains(e.Message, "knowledge base's defaults") || e.Limit != 100 {
			t.Errorf("got %+v, want it to say whose number it is", err)
		}
	}
}

func TestModelOfThreeLevels(t *testing.T) { // D-02, CT-14
	t.Parallel()
	server := config.Server{Limits: messages.DefaultRetrieveLimits(), Models: messages.RerankProviders{{Name: "local", Models: []string{"small", "large"}}, {Name: "tei"}}}
	for _, c := range []struct {
		kb, request string
		want        config.Model
		field       string
	}{
		{"", `{"type":"MODEL"}`, config.Model{Provider: "local", Name: "small"}, ""},
		{`{"modelConfiguration":{"model":"large"}}`, `{"type":"MODEL"}`, config.Model{Provider: "local", Name: "large"}, ""},
		{`{"type":"MODEL","modelConfiguration":{"provider":"tei"}}`, `{}`, config.Model{Provider: "tei"}, ""},
		{`{"type":"MODEL","modelConfiguration":{"provider":"tei"}}`, `{"modelConfiguration":{"provider":"local"}}`, config.Model{Provider: "local", Name: "small"}, ""},
		{`{"type":"MODEL","modelConfiguration":{"provider":"tei"}}`, `{"modelConfiguration":{"model":"small"}}`, config.Model{}, "model"},
		{`{"type":"MODEL","modelConfiguration":{"provider":"gone"}}`, `{}`, config.Model{}, "provider"},
		{`{"type":"MODEL","modelConfiguration":{"provider":"gone"}}`, `{"type":"RRF"}`, config.Model{}, ""},
	} {
		wrap := func(s string) *messages.RetrievalConfiguration {
			if s == "" {
				return nil
			}
			return read(t, `{"rerankingConfiguration":`+s+`}`)
		}
		got, err := config.Resolve(server, messages.IndexTypeHybrid, wrap(c.kb), wrap(c.request))
		e, _ := messages.AsError(err)
		if failed := e != nil; failed != (c.field != "") || failed && e.Field != "retrievalConfiguration.rerankingConfiguration.modelConfiguration."+c.field {
			t.Errorf("%s under %s: got %v, want %q", c.kb, c.request, err, c.field)
		}
		if c.field == "" && got.Model != c.want {
			t.Errorf("%s under %s: got %+v, want %+v", c.kb, c.request, got.Model, c.want)
		}
	}
}
