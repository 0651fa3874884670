package indexer_test

import (
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
