package messages

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestSchemaDescribesAMessage(t *testing.T) {
	type inner struct {
		Max int `json:"max,omitempty"`
	}
	type message struct {
		Name string            `json:"name"`
		At   *time.Time        `json:"at,omitempty"`
		K    *json.Number      `json:"k,omitempty"`
		Raw  json.RawMessage   `json:"raw,omitempty"`
		Data []byte            `json:"data,omitempty"`
		Tags map[string]string `json:"tags,omitempty"`
		List []float64         `json:"list"`
		OK   bool              `json:"ok,omitempty"`
		inner
	}
	properties := `"properties":{"at":{"format":"date-time","type":"string"},` +
		`"data":{"contentEncoding":"base64","type":"string"},"k":{"type":"number"},"list":{"items":{"type":"number"},"type":"array"},` +
		`"max":{"type":"integer"},"name":{"type":"string"},"ok":{"type":"boolean"},"raw":{},` +
		`"tags":{"additionalProperties":{"type":"string"},"type":"object"}},"required":["name","list"],"type":"object"}`
	if got, want := schemaOf(message{}, true), `{"additionalProperties":false,`+properties; got != want {
		t.Errorf("request: got  %s\nwant %s", got, want)
	}
	if got, want := schemaOf(message{}, false), `{`+properties; got != want {
		t.Errorf("reply: got  %s\nwant %s", got, want)
	}
}

// Every message of an operation that has a golden must be valid by the schema that discovery shows.
func TestGoldensFitTheSchemasOfTheirOperations(t *testing.T) {
	checked := map[string]bool{}
	for _, o := range Operations() {
		shown := OperationMetadata(o.Name)
		for key, message := range map[string]any{MetadataRequest: o.Request, MetadataReply: o.Reply} {
			schema := compile(t, newCompiler(t, parseJSON(t, []byte(shown[key]))), "")
			for _, m := range all {
				if reflect.TypeOf(m.value).Elem() != reflect.TypeOf(message) {
					continue
				}
				checked[o.Name+key] = true
				if m.strict != (key == MetadataRequest) && typeName(message) != "KBRef" && typeName(message) != "DeadLetterRef" {
					t.Errorf("%s of %s: %s is strict %v", key, o.Name, m.golden, m.strict)
				}
				if err := schema.Validate(parseJSON(t, compact(t, readGolden(t, m.golden)))); err != nil {
					t.Errorf("%s of %s: %s: %v", key, o.Name, m.golden, err)
				}
			}
		}
	}
	if len(checked) != 2*len(Operations()) {
		t.Errorf("%d of %d messages have a golden", len(checked), 2*len(Operations()))
	}
}

// What a request must have by its schema, docs/asyncapi.yaml says too.
func TestSchemasAskForWhatTheDescriptionAsksFor(t *testing.T) {
	doc := readAPI(t)
	for _, o := range Operations() {
		for key, message := range map[string]any{MetadataRequest: o.Request, MetadataReply: o.Reply} {
			var s struct{ Required []string }
			if err := json.Unmarshal([]byte(OperationMetadata(o.Name)[key]), &s); err != nil {
				t.Fatal(err)
			}
			slices.Sort(s.Required)
			if want := sorted(doc.at("components", "schemas", typeName(message), "required")); !slices.Equal(s.Required, want) {
				t.Errorf("%s of %s: requires %v, docs/asyncapi.yaml says %v", key, o.Name, s.Required, want)
			}
		}
	}
}
