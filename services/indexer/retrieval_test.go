package indexer_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
)

func TestUpdateKBRefusesAThresholdOfOtherModes(t *testing.T) { // CT-73, KB configuration
	o := newOffice(t)
	const field = "retrievalConfiguration.scoreThreshold"
	for body, code := range map[string]messages.Code{
		`{"retrievalConfiguration":{"scoreThreshold":0.5}}`:                                                                messages.CodeScoreThreshold,
		`{"retrievalConfiguration":{"scoreThreshold":0.5,"searchType":["FULL_TEXT"]}}`:                                     messages.CodeScoreThreshold,
		`{"retrievalConfiguration":{"scoreThreshold":0.5,"denseVectorSearchConfiguration":{"numberOfResults":0}}}`:         messages.CodeScoreThreshold,
		`{"retrievalConfiguration":{"scoreThreshold":2,"searchType":["DENSE_VECTOR"]}}`:                                    messages.CodeValidation,
		`{"retrievalConfiguration":{"scoreThreshold":"0.5","searchType":["DENSE_VECTOR"]}}`:                                messages.CodeValidation,
		`{"retrievalConfiguration":{"scoreThreshold":0.5,"searchType":["DENSE_VECTOR"],"rerankingConfiguration":{"a":1}}}`: "",
	} {
		_, err := o.ask(o.admin.UpdateKB, "docs", body)
		if code == "" {
			wantError(t, body, err, messages.CodeValidation, "retrievalConfiguration.rerankingConfiguration.a")
			continue
		}
		wantError(t, body, err, code, field)
	}
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{"retrievalConfiguration":{"scoreThreshold":0.5,"searchType":["DENSE_VECTOR"]}}`); err != nil {
		t.Errorf("dense alone: %v", err)
	}
	_, err := o.ask(o.admin.UpdateKB, "docs", `{"retrievalConfiguration":{"outputConfiguration":{"fields":["year"]}}}`)
	wantError(t, "undeclared field", err, messages.CodeValidation, "retrievalConfiguration.outputConfiguration.fields[0]")
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{"metadata":[{"name":"year","type":"long"}],"retrievalConfiguration":{"outputConfiguration":{"fields":["year"]}}}`); err != nil {
		t.Errorf("a field added with it: %v", err)
	}
}

func TestKBFiltersAreChecked(t *testing.T) { // CT-35, CT-44, D-23, KB configuration
	o := newOffice(t)
	const root = "retrievalConfiguration."
	const schema = `"metadata":[{"name":"year","type":"long"},{"name":"team","type":"string","internal":true}],`
	for configuration, field := range map[string]string{
		`{"filter":{"equals":{"key":"month","value":1}}}`:                           "filter.equals",
		`{"filter":{"notAll":[{"isNull":{"key":"month"}}]}}`:                        "filter.notAll[0].isNull",
		`{"filter":{"equals":{"key":"team","value":"a"}}}`:                          "filter.equals",
		`{"filter":{"equals":{"key":"year","value":"2024"}}}`:                       "filter.equals.value",
		`{"filter":{"equals":{"key":"year","value":1}},"filterExpression":"month"}`: "filterExpression",
		`{"filterExpression":"month = 1"}`:                                          "filterExpression",
		`{"filterExpression":7}`:                                                    "filterExpression",
		`{"filter":"year = 1"}`:                                                     "filter",
		`{"filterExpression":"` + strings.Repeat(" ", 2049) + `"}`:                  "filterExpression",
	} {
		_, err := o.ask(o.admin.CreateKB, "", `{"knowledgeBaseName":"never",`+schema+`"retrievalConfiguration":`+configuration+`}`)
		wantError(t, "create with "+configuration, err, messages.CodeValidation, root+field)
		_, err = o.ask(o.admin.UpdateKB, "docs", `{`+schema+`"retrievalConfiguration":`+configuration+`}`)
		wantError(t, "update with "+configuration, err, messages.CodeValidation, root+field)
	}
	const good = `"retrievalConfiguration":{"filter":{"equals":{"key":"year","value":2024}},"filterExpression":"year IS NOT NULL"}`
	if _, err := o.ask(o.admin.CreateKB, "", `{"knowledgeBaseName":"filtered",`+schema+good+`}`); err != nil {
		t.Errorf("create: %v", err)
	}
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{`+schema+good+`}`); err != nil {
		t.Errorf("update, a field added with it: %v", err)
	}
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{"retrievalConfiguration":{"filter":null,"filterExpression":null}}`); err != nil {
		t.Errorf("null: %v", err)
	}
}

func TestKBRerankModelsAreChecked(t *testing.T) { // design 6: also at KB update
	o := newOffice(t)
	const root = "retrievalConfiguration.rerankingConfiguration.modelConfiguration."
	for configuration, field := range map[string]string{
		`{"type":"MODEL","modelConfiguration":{"provider":"bailian"}}`:               "provider",
		`{"modelConfiguration":{"provider":"bailian"}}`:                              "provider",
		`{"type":"MODEL","modelConfiguration":{"provider":"local","model":"other"}}`: "model",
		`{"type":"MODEL"}`: "",
		`{"type":"MODEL","modelConfiguration":{"provider":"local","model":"large"}}`: "",
		`{"modelConfiguration":{"model":"of-whom"}}`:                                 "",
	} {
		_, create := o.ask(o.admin.CreateKB, "", `{"knowledgeBaseName":"m`+strconv.Itoa(len(configuration))+`","retrievalConfiguration":{"rerankingConfiguration":`+configuration+`}}`)
		_, update := o.ask(o.admin.UpdateKB, "docs", `{"retrievalConfiguration":{"rerankingConfiguration":`+configuration+`}}`)
		for what, err := range map[string]error{"create": create, "update": update} {
			if field == "" && err != nil {
				t.Errorf("%s with %s: %v", what, configuration, err)
			}
			if field != "" {
				wantError(t, what+" with "+configuration, err, messages.CodeValidation, root+field)
			}
		}
	}
}

func TestMandatoryFilterOfAKnowledgeBase(t *testing.T) { // D-15, CT-35
	o := newOffice(t)
	const schema = `"metadata":[{"name":"year","type":"long"},{"name":"owner","type":"string","internal":true}],`
	for mandatory, want := range map[string]struct{ field, holds string }{
		`{"equals":{"key":"month","value":1}}`:               {"mandatoryFilter.equals", `"month"`},
		`{"notAll":[{"equals":{"key":"year","value":"a"}}]}`: {"mandatoryFilter.notAll[0].equals.value", "long"},
		`{"equals":{"key":"owner","value":"$user"}}`:         {"mandatoryFilter.equals.value", "$user"},
		`"owner = '$tenant' AND month = 1"`:                  {"mandatoryFilter", "position 22"},
		`"owner = "`:                                         {"mandatoryFilter", "position 8"},
		`""`:                                                 {"mandatoryFilter", "position 0"},
		`{}`:                                                 {"mandatoryFilter", "one operator"},
		`7`:                                                  {"mandatoryFilter", "object"},
		`"` + strings.Repeat(" ", 2049) + `"`:                {"mandatoryFilter", "2048"},
		`{"in":{"key":"year","value":[` + strings.Repeat("1,", 256) + `1]}}`: {"mandatoryFilter.in.value", "256"},
	} {
		for _, ask := range []struct {
			do   request
			name string
		}{{o.admin.CreateKB, `"knowledgeBaseName":"never",`}, {o.admin.UpdateKB, ``}} {
			_, err := o.ask(ask.do, "docs", `{`+ask.name+schema+`"mandatoryFilter":`+mandatory+`}`)
			wantError(t, mandatory, err, messages.CodeValidation, want.field)
			if err == nil || !strings.Contains(err.Error(), want.holds) {
				t.Errorf("%s: got %v, want it to say %s", mandatory, err, want.holds)
			}
		}
	}
	shown := func(got any, err error) string {
		t.Helper()
		info, ok := got.(messages.KBInfo)
		if err != nil || !ok {
			t.Fatalf("got %+v (%v)", got, err)
		}
		return string(info.MandatoryFilter)
	}
	const own = `"owner = '$tenant'"`
	if got := shown(o.ask(o.admin.CreateKB, "", `{"knowledgeBaseName":"owned",`+schema+`"mandatoryFilter":`+own+`}`)); got != own {
		t.Errorf("create: got %s, want %s", got, own)
	}
	before, err := o.store.LoadKB(t.Context(), tenant, "docs")
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(o.ask(o.admin.UpdateKB, "docs", `{`+schema+`"mandatoryFilter":`+own+`}`)); got != own {
		t.Errorf("update, the field added with it: got %s, want %s", got, own)
	}
	if got := shown(o.ask(o.admin.UpdateKB, "docs", `{"description":"x"}`)); got != own {
		t.Errorf("another update: got %s, want it to stay", got)
	}
	if got := shown(o.ask(o.admin.UpdateKB, "docs", `{"mandatoryFilter":null}`)); got != "" {
		t.Errorf("null: got %s, want none", got)
	}
	if after, err := o.store.LoadKB(t.Context(), tenant, "docs"); err != nil || after.Revision != before.Revision+3 || after.MandatoryFilter != nil {
		t.Errorf("got revision %d after %d, filter %s (%v); want every change to count", after.Revision, before.Revision, after.MandatoryFilter, err)
	}
	_, err = o.ask(o.admin.UpdateKB, "docs", `{"retrievalConfiguration":{"mandatoryFilter":`+own+`}}`)
	wantError(t, "in the retrieval configuration", err, messages.CodeValidation, "retrievalConfiguration.mandatoryFilter")
}

func TestAHiddenDocumentsChunksCannotBeChanged(t *testing.T) { // D-15
	o := newOffice(t)
	o.publishVersion("a", "one\ntwo")
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{"metadata":[{"name":"owner","type":"string","internal":true}],"mandatoryFilter":"owner = '$tenant'"}`); err != nil {
		t.Fatal(err)
	}
	change := func(doc string) error {
		_, err := o.ask(o.admin.UpdateChunk, "docs", `{"docId":"`+doc+`","chunkId":0,"status":"inactive"}`)
		return err
	}
	hidden, unknown := change("a"), change("b")
	wantError(t, "hidden", hidden, messages.CodeDocumentNotFound, "docId")
	if h, u := strings.ReplaceAll(hidden.Error(), " a ", " X "), strings.ReplaceAll(unknown.Error(), " b ", " X "); strings.ReplaceAll(h, `"a"`, `"X"`) != strings.ReplaceAll(u, `"b"`, `"X"`) {
		t.Errorf("hidden says %v, unknown %v", hidden, unknown)
	}
	if n := o.count("SELECT count(*) FROM chunks WHERE NOT active"); n != 0 {
		t.Errorf("%d chunks are inactive, want none", n)
	}
	o.exec(`UPDATE documents SET live_typed = '{"owner":"` + tenant + `"}'`)
	if err := change("a"); err != nil {
		t.Errorf("shown: %v", err)
	}
}

func TestFilterLimitsOfAKnowledgeBase(t *testing.T) { // D-16
	o := newOffice(t)
	for configuration, field := range map[string]string{
		`{"filterLimits":{"depth":65}}`:                                                             "filterLimits.depth",
		`{"filterLimits":{"values":-1}}`:                                                            "filterLimits.values",
		`{"filterLimits":{"conditions":5000}}`:                                                      "filterLimits.conditions",
		`{"filterLimits":{"expressionCharacters":1.5}}`:                                             "filterLimits.expressionCharacters",
		`{"filterLimits":{"bytes":1}}`:                                                              "filterLimits.bytes",
		`{"filterLimits":{"conditions":1},"filterExpression":"year = 1 OR year = 2"}`:               "filterExpression",
		`{"filterLimits":{"values":1},"filter":{"in":{"key":"year","value":[1,2]}}}`:                "filter.in.value",
		`{"filterLimits":{"depth":1},"filter":{"notAll":[{"notAll":[{"isNull":{"key":"year"}}]}]}}`: "filter.notAll[0].notAll",
	} {
		_, err := o.ask(o.admin.UpdateKB, "docs", `{"metadata":[{"name":"year","type":"long"}],"retrievalConfiguration":`+configuration+`}`)
		wantError(t, configuration, err, messages.CodeValidation, "retrievalConfiguration."+field)
	}
	if _, err := o.ask(o.admin.UpdateKB, "docs", `{"metadata":[{"name":"year","type":"long"}],"retrievalConfiguration":{"filterLimits":{"depth":1,"conditions":1,"values":2,"expressionCharacters":100},"filter":{"in":{"key":"year","value":[1,2]}}}}`); err != nil {
		t.Error(err)
	}
}
