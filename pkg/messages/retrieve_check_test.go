package messages

import (
	"encoding/json"
	"testing"
)

func TestStoredRetrievalConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw   string
		index IndexType
		code  Code
		field string
	}{
		{``, IndexTypeHybrid, "", ""},
		{`null`, IndexTypeVector, "", ""},
		{`{"searchType":["FULL_TEXT"],"rerankingConfiguration":{"type":"RRF","rrfConfiguration":{"k":6e1}}}`, IndexTypeHybrid, "", ""},
		{`5`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration"},
		{`{"rerank":1}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.rerank"},
		{`{"searchType":"FULL_TEXT"}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.searchType"},
		{`{"searchType":["FULL_TEXT"]}`, IndexTypeVector, CodeRetrieverModeInvalid, "retrievalConfiguration.searchType"},
		{`{"searchType":["DENSE_VECTOR"]}`, IndexTypeBM25, CodeRetrieverModeInvalid, "retrievalConfiguration.searchType"},
		{`{"rerankingConfiguration":{"rrfConfiguration":{"k":1e400}}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.rerankingConfiguration.rrfConfiguration.k"},
		{`{"denseVectorSearchConfiguration":{"numberOfResults":1001}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.denseVectorSearchConfiguration.numberOfResults"},
	} {
		err := CheckStoredRetrieval(json.RawMessage(c.raw), c.index)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", c.raw, err)
			}
			continue
		}
		if e, ok := AsError(err); !ok || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s: got %v, want %s of %s", c.raw, err, c.code, c.field)
		}
	}
}

func TestEnvelopeEncodesAsJSONWould(t *testing.T) {
	t.Parallel()
	for _, e := range []Envelope{
		{Code: CodeSuccess, Message: "succeed", RequestID: "r1", Data: json.RawMessage(`{"a":[1,"<"]}`)},
		{Code: CodeSuccess, RequestID: `"quoted"`},
		Failure(Invalid("f", "is <wrong>"), "r2"),
	} {
		got, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var back Envelope
		if err := json.Unmarshal(got, &back); err != nil || back.Code != e.Code || back.Message != e.Message ||
			back.RequestID != e.RequestID || back.Field != e.Field || string(back.Data) != string(e.Data) {
			t.Errorf("got %s (%v), want %+v", got, err, e)
		}
	}
}
