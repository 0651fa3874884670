package messages

import (
	"fmt"
	"strings"
	"testing"
)

func TestChooseModel(t *testing.T) {
	known := RerankProviders{{Name: "local", Models: []string{"small", "large"}}, {Name: "tei"}}
	for _, c := range []struct {
		config          *ModelConfig
		provider, model string
		field           string // of the error
	}{
		{nil, "local", "small", ""},
		{&ModelConfig{}, "local", "small", ""},
		{&ModelConfig{Model: "large"}, "local", "large", ""},
		{&ModelConfig{Provider: "tei"}, "tei", "", ""},
		{&ModelConfig{Provider: "local", Model: "small"}, "local", "small", ""},
		{&ModelConfig{Provider: "bailian"}, "", "", "provider"},
		{&ModelConfig{Provider: "LOCAL"}, "", "", "provider"},
		{&ModelConfig{Provider: "local", Model: "huge"}, "", "", "model"},
		{&ModelConfig{Provider: "tei", Model: "small"}, "", "", "model"},
	} {
		provider, model, err := known.Choose(c.config)
		e, _ := AsError(err)
		if got := (e != nil); got != (c.field != "") || got && (e.Code != CodeValidation || e.Field != modelRoot+"."+c.field) || provider != c.provider || model != c.model {
			t.Errorf("%+v: got %s, %s, %v", c.config, provider, model, err)
		}
	}
	if _, _, err := RerankProviders(nil).Choose(nil); err == nil {
		t.Error("MODEL without any provider passes")
	}
}

func TestCheckModel(t *testing.T) {
	known := RerankProviders{{Name: "local", Models: []string{"small"}}}
	for text, want := range map[string]string{
		`{}`: "",
		`{"rerankingConfiguration":{"type":"RRF"}}`:                                                         "",
		`{"rerankingConfiguration":{"type":"MODEL"}}`:                                                       "",
		`{"rerankingConfiguration":{"type":"MODEL","modelConfiguration":{"model":"of-another-level"}}}`:     "",
		`{"rerankingConfiguration":{"modelConfiguration":{"provider":"local"}}}`:                            "",
		`{"rerankingConfiguration":{"type":"RRF","modelConfiguration":{"provider":"bailian"}}}`:             "provider",
		`{"rerankingConfiguration":{"type":"MODEL","modelConfiguration":{"provider":"x"}}}`:                 "provider",
		`{"rerankingConfiguration":{"type":"MODEL","modelConfiguration":{"provider":"local","model":"x"}}}`: "model",
	} {
		var c RetrievalConfiguration
		if err := DecodeStrict([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		err := c.CheckModel(known)
		if e, ok := AsError(err); ok != (want != "") || ok && e.Field != modelRoot+"."+want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if err := (*RetrievalConfiguration)(nil).CheckModel(nil); err != nil {
		t.Errorf("no configuration: %v", err)
	}
	long := &RetrievalConfiguration{Reranking: &RerankingConfig{Model: &ModelConfig{Model: strings.Repeat("m", maxModelName+1)}}}
	if e, ok := AsError(long.Validate(DefaultRetrieveLimits())); !ok || e.Field != modelRoot+".model" {
		t.Errorf("a long name: got %v", e)
	}
}

func TestCheckSeveral(t *testing.T) {
	var many []string
	for i := range MaxKnowledgeBases + 1 {
		many = append(many, fmt.Sprintf("kb%d", i))
	}
	for field, r := range map[string]RetrieveRequest{
		"":                      {KnowledgeBaseNames: many[:MaxKnowledgeBases], Subspaces: map[string][]string{"kb3": {"a"}}},
		"knowledgeBaseNames":    {KnowledgeBaseNames: many},
		"knowledgeBaseNames[1]": {KnowledgeBaseNames: []string{"a", "a"}},
		"knowledgeBaseNames[0]": {KnowledgeBaseNames: []string{AllScope}},
		"knowledgeBaseName":     {KnowledgeBaseNames: []string{"a"}, KnowledgeBaseName: "a"},
		"subspace":              {KnowledgeBaseNames: []string{"a"}, Subspace: []string{}},
		"subspaces":             {KnowledgeBaseNames: []string{"a"}, Subspaces: map[string][]string{"b": {"x"}}},
	} {
		if e, ok := AsError(r.CheckSeveral()); ok != (field != "") || ok && (e.Field != field || e.Code != CodeValidation) {
			t.Errorf("%q: got %v", field, e)
		}
	}
	if e, _ := AsError((&RetrieveRequest{}).CheckSeveral()); e == nil || e.Field != "knowledgeBaseNames" {
		t.Errorf("no names: got %v", e)
	}
	if err := (&RetrieveRequest{KnowledgeBaseNames: []string{}}).CheckSeveral(); err != nil {
		t.Errorf("an empty list: got %v", err)
	}
}
