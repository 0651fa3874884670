package schema_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weir-project/weir/services/retriever/internal/schema"
)

func TestSchemaDescribesAMessage(t *testing.T) {
	t.Parallel()
	type Page struct {
		Max int `json:"max,omitempty"`
	}
	type message struct {
		Name  string            `json:"name"`
		At    *time.Time        `json:"at,omitempty"`
		K     *json.Number      `json:"k,omitempty"`
		Raw   json.RawMessage   `json:"raw,omitempty"`
		Data  []byte            `json:"data,omitempty"`
		Tags  map[string]string `json:"tags,omitempty"`
		List  []float64         `json:"list"`
		OK    bool              `json:"ok,omitempty"`
		inner int
		Page
	}
	_ = message{}.inner
	want := `{"additionalProperties":false,"properties":{"at":{"format":"date-time","type":"string"},` +
		`"data":{"contentEncoding":"base64","type":"string"},"k":{"type":"number"},"list":{"items":{"type":"number"},"type":"array"},` +
		`"max":{"type":"integer"},"name":{"type":"string"},"ok":{"type":"boolean"},"raw":{},` +
		`"tags":{"additionalProperties":{"type":"string"},"type":"object"}},"required":["name","list"],"type":"object"}`
	if got := schema.Of(message{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
