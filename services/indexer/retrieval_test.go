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
