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
		// CT-73 of a knowledge base: what it leaves open is the system's, which runs both legs.
		{`{"scoreThreshold":0.5}`, IndexTypeHybrid, CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":0.5}`, IndexTypeBM25, CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":0.5}`, IndexTypeVector, "", ""},
		{`{"scoreThreshold":0.5,"searchType":["FULL_TEXT"]}`, IndexTypeHybrid, CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":0.5,"searchType":["DENSE_VECTOR"]}`, IndexTypeHybrid, "", ""},
		{`{"scoreThreshold":0.5,"fullTextSearchConfiguration":{"numberOfResults":0}}`, IndexTypeHybrid, "", ""},
		{`{"scoreThreshold":0.5,"denseVectorSearchConfiguration":{"numberOfResults":0}}`, IndexTypeHybrid, CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":0.5,"rerankingConfiguration":{"weightConfiguration":{"fullTextSearchWeight":0}}}`, IndexTypeHybrid, "", ""},
		{`{"scoreThreshold":0.5,"rerankingConfiguration":{"type":"RRF","weightConfiguration":{"fullTextSearchWeight":0}}}`, IndexTypeHybrid, CodeScoreThreshold, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":0.5,"rerankingConfiguration":{"type":"RRF","rrfConfiguration":{"fullTextSearchWeight":0}}}`, IndexTypeHybrid, "", ""},
		{`{"scoreThreshold":1.5,"searchType":["DENSE_VECTOR"]}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.scoreThreshold"},
		{`{"scoreThreshold":null}`, IndexTypeHybrid, "", ""},
		{`{"limits":"tablestore","denseVectorSearchConfiguration":{"numberOfResults":100}}`, IndexTypeHybrid, "", ""},
		{`{"limits":"tablestore","denseVectorSearchConfiguration":{"numberOfResults":101}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.denseVectorSearchConfiguration.numberOfResults"},
		{`{"limits":"none"}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.limits"},
		{`{"fullTextSearchConfiguration":{"syntax":"lucene"}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.fullTextSearchConfiguration.syntax"},
		{`{"outputConfiguration":{"fields":["year","docId"]}}`, IndexTypeHybrid, "", ""},
		{`{"outputConfiguration":{"fields":["acl"]}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.outputConfiguration.fields[0]"},
		{`{"outputConfiguration":{"fields":["year","none"]}}`, IndexTypeHybrid, CodeValidation, "retrievalConfiguration.outputConfiguration.fields[1]"},
	} {
		schema := MetadataSchema{{Name: "year", Type: TypeLong}, {Name: "acl", Type: TypeString, Internal: true}}
		err := CheckStoredRetrieval(json.RawMessage(c.raw), c.index, schema)
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
