package messages

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// public returns the struct types of public messages by name, and which of them are read strictly.
func public() (types map[string]reflect.Type, strict map[string]bool) {
	types, strict = map[string]reflect.Type{}, map[string]bool{}
	for _, m := range all {
		kind := reflect.TypeOf(m.value)
		if slices.Contains(internalTypes, kind.Elem().Name()) {
			continue
		}
		collect(kind, types)
		if m.strict {
			reach(kind, strict)
		}
	}
	return types, strict
}

// collect adds the struct types of t and of its fields; embedded ones are part of theirs.
func collect(t reflect.Type, into map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), into)
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[Event]().PkgPath() || into[t.Name()] != nil {
			return
		}
		into[t.Name()] = t
		for _, f := range jsonFields(t) {
			collect(f.kind, into)
		}
	}
}

type jsonField struct {
	key      string
	kind     reflect.Type
	optional bool // left out when empty
}

// jsonFields are the keys of a struct's JSON form, those of embedded structs included.
func jsonFields(t reflect.Type) []jsonField {
	var out []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" {
			out = append(out, jsonFields(f.Type)...)
			continue
		}
		out = append(out, jsonField{key, f.Type, options == "omitempty"})
	}
	return out
}

func TestAsyncAPISchemasAreTheGoTypes(t *testing.T) {
	doc := readAPI(t)
	types, strict := public()
	for name, kind := range types {
		checkSchema(doc, name, kind, strict[name])
	}
	enums := []string{"Code", "DocumentStatus", "ChunkStatus", "IndexType", "MetadataType", "SearchType", "RerankType", "JobKind", "JobState", "JobPhase"}
	for name := range doc.object("components", "schemas") {
		if types[name] == nil && !slices.Contains(enums, name) && !strings.HasSuffix(name, "Headers") {
			t.Errorf("schema %s is no public type", name)
		}
	}
}

func checkSchema(doc apiDoc, name string, kind reflect.Type, strict bool) {
	t, at := doc.t, []string{"components", "schemas", name}
	t.Helper()
	if doc.at(at...) == nil {
		t.Errorf("%s has no schema", name)
		return
	}
	if closed := doc.at(append(at, "additionalProperties")...) == false; closed != strict {
		t.Errorf("%s: additionalProperties: false is %v, want %v", name, closed, strict)
	}
	properties := doc.object(append(at, "properties")...)
	var always []string
	for _, f := range jsonFields(kind) {
		schema, ok := properties[f.key].(map[string]any)
		if !ok {
			t.Errorf("%s.%s is not in the schema", name, f.key)
			continue
		}
		delete(properties, f.key)
		if err := checkKind(schema, f.kind); err != nil {
			t.Errorf("%s.%s: %v", name, f.key, err)
		}
		if !f.optional {
			always = append(always, f.key)
		}
	}
	for key := range properties {
		t.Errorf("%s.%s is in the schema but not in the Go type", name, key)
	}
	checkRequired(doc, name, always, strict)
}

// checkRequired: a reply always has its keys without omitempty. What a request must have is for its
// Validate to say, but a key that may be left out of the Go type's JSON cannot be.
func checkRequired(doc apiDoc, name string, always []string, strict bool) {
	doc.t.Helper()
	got := sorted(doc.at("components", "schemas", name, "required"))
	slices.Sort(always)
	if !strict && !slices.Equal(got, always) {
		doc.t.Errorf("%s requires %v, want %v", name, got, always)
	}
	for _, key := range got {
		if strict && !slices.Contains(always, key) && key != "knowledgeBaseName" {
			doc.t.Errorf("%s requires %s, which is optional", name, key)
		}
	}
}

// checkKind compares a property's schema with a Go type.
func checkKind(schema map[string]any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawMessage {
		return nil // whatever the schema says of it
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return want(schema, "type", "string", "format", "date-time")
	case t == number:
		return want(schema, "type", "integer")
	case t.Kind() == reflect.Struct, t.Kind() == reflect.String && t != reflect.TypeFor[string]():
		return wantRef(schema, t.Name())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return want(schema, "type", "string", "contentEncoding", "base64")
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return wantContainer(schema, t)
	}
	kinds := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number", reflect.Float32: "number",
	}
	return want(schema, "type", kinds[t.Kind()])
}

func wantContainer(schema map[string]any, t reflect.Type) error {
	kind, inner := "array", "items"
	if t.Kind() == reflect.Map {
		kind, inner = "object", "additionalProperties"
	}
	if err := want(schema, "type", kind); err != nil {
		return err
	}
	items, ok := schema[inner].(map[string]any)
	if !ok {
		return fmt.Errorf("says nothing of its %s", inner)
	}
	return checkKind(items, t.Elem())
}

// want checks pairs of key and value.
func want(schema map[string]any, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if schema[pairs[i]] != pairs[i+1] {
			return fmt.Errorf("%s is %v, want %s", pairs[i], schema[pairs[i]], pairs[i+1])
		}
	}
	return nil
}

// wantRef accepts a bare reference, and one in an allOf, which may have a description beside it.
func wantRef(schema map[string]any, name string) error {
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 {
		schema, _ = all[0].(map[string]any)
	}
	if got, want := schema["$ref"], "#/components/schemas/"+name; got != want {
		return fmt.Errorf("refers to %v, want %s", got, want)
	}
	return nil
}

func TestGoldensFollowTheirSchemas(t *testing.T) {
	doc := readAPI(t)
	types, _ := public()
	c := newCompiler(t, doc.root)
	checked := 0
	for _, m := range all {
		name := reflect.TypeOf(m.value).Elem().Name()
		if types[name] == nil {
			continue
		}
		checked++
		schema := compile(t, c, "/components/schemas/"+name)
		if err := schema.Validate(parseJSON(t, readGolden(t, m.golden))); err != nil {
			t.Errorf("%s: %v", m.golden, err)
		}
	}
	if checked < 35 {
		t.Errorf("only %d goldens were checked", checked)
	}
}

// What DecodeSubmit and Validate refuse for its form, the schema refuses too, as far as it can tell.
func TestSchemasRefuseWhatTheCodeRefuses(t *testing.T) {
	c := newCompiler(t, readAPI(t).root)
	for body, name := range map[string]string{
		`{"text":"x"}`: "Submit", `{"docId":"a"}`: "Submit", `{"docId":"a","text":"x","data":"eA=="}`: "Submit", `{"docId":"a","text":"x","docID":"b"}`: "Submit",
		`{"docId":"a","text":"x","subspace":"A"}`: "Submit", `{"docId":"a","text":7}`: "Submit", `{"knowledgeBaseName":"A"}`: "CreateKB", `{}`: "CreateKB",
		`{"knowledgeBaseName":"a","indexType":"flat"}`: "CreateKB", `{"knowledgeBaseName":"a","metadata":[{"name":"","type":"long"}]}`: "CreateKB",
		`{"knowledgeBaseName":"a","metadata":[{"name":"a","type":"text"}]}`: "CreateKB", `{"maxResults":"1"}`: "Page", `{"MaxResults":1}`: "Page",
	} {
		if err := compile(t, c, "/components/schemas/"+name).Validate(parseJSON(t, []byte(body))); err == nil {
			t.Errorf("%s passes as %s", body, name)
		}
	}
}

// TestAsyncAPIExamplesAreTheGoldens keeps the document's examples true: each bears the name of a golden
// and is equal to it, in an envelope for replies, and follows the message's own schema.
func TestAsyncAPIExamplesAreTheGoldens(t *testing.T) {
	doc := readAPI(t)
	c, used := newCompiler(t, doc.root), map[string]bool{}
	for message := range doc.object("components", "messages") {
		examples, _ := doc.at("components", "messages", message, "examples").([]any)
		if len(examples) == 0 && message != "upload" {
			t.Errorf("message %s has no example", message)
		}
		for _, e := range examples {
			example, _ := e.(map[string]any)
			name := fmt.Sprint(example["name"])
			used[name] = true
			checkExample(doc, c, message, name, example)
		}
	}
	types, _ := public()
	for _, m := range all {
		kind := reflect.TypeOf(m.value).Elem().Name()
		if types[kind] != nil && kind != "Error" && kind != "Envelope" && !used[m.golden] {
			t.Errorf("golden %s is no example of any message", m.golden)
		}
	}
}

func checkExample(doc apiDoc, c *jsonschema.Compiler, message, name string, example map[string]any) {
	t := doc.t
	t.Helper()
	golden := parseJSON(t, readGolden(t, name))
	if strings.HasSuffix(name, "_raw") {
		wantHeaders := golden.(map[string]any)["headers"]
		if !reflect.DeepEqual(example["headers"], wantHeaders) {
			t.Errorf("%s, example %s has the headers %v, want %v", message, name, example["headers"], wantHeaders)
		}
	} else {
		got := example["payload"]
		if strings.HasSuffix(message, "_reply") && !strings.HasPrefix(name, "envelope_") {
			envelope, _ := got.(map[string]any)
			got = envelope["data"]
		}
		if !reflect.DeepEqual(got, golden) {
			t.Errorf("%s, example %s is\n%s\nwant\n%s", message, name, asJSON(t, got), asJSON(t, golden))
		}
		if err := compile(t, c, "/components/messages/"+message+"/payload").Validate(example["payload"]); err != nil {
			t.Errorf("%s, example %s: %v", message, name, err)
		}
	}
	if headers, ok := example["headers"]; ok {
		schema := compile(t, c, strings.TrimPrefix(doc.ref("components", "messages", message, "headers"), "#"))
		if err := schema.Validate(headers); err != nil {
			t.Errorf("%s, headers of example %s: %v", message, name, err)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
