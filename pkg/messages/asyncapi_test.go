package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// internalTypes travel between services only and are not in docs/asyncapi.yaml.
var internalTypes = []string{"Ref", "ParseWork", "EmbedWork", "EmbedChunk", "IndexWork", "IndexVector", "EmbedRequest", "EmbedReply"}

// apiDoc is docs/asyncapi.yaml as JSON values.
type apiDoc struct {
	t    *testing.T
	root any
}

func readAPI(t *testing.T) apiDoc {
	t.Helper()
	text, err := os.ReadFile("../../docs/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return apiDoc{t, parseJSON(t, body)}
}

// parseJSON keeps numbers as they are written.
func parseJSON(t *testing.T, body []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// at returns the value under the keys, nil when there is none.
func (d apiDoc) at(keys ...string) any {
	v := d.root
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// object is at for a value that must be an object.
func (d apiDoc) object(keys ...string) map[string]any {
	d.t.Helper()
	m, ok := d.at(keys...).(map[string]any)
	if !ok {
		d.t.Fatalf("docs/asyncapi.yaml has no %s", strings.Join(keys, "."))
	}
	return m
}

// ref returns what a $ref under the keys points to.
func (d apiDoc) ref(keys ...string) string {
	s, _ := d.at(append(keys, "$ref")...).(string)
	return s
}

const docURL = "mem:///doc.json"

// newCompiler compiles schemas of a document; nothing is ever fetched.
func newCompiler(t *testing.T, doc any) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.AssertFormat()
	if err := c.AddResource(docURL, doc); err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t *testing.T, c *jsonschema.Compiler, pointer string) *jsonschema.Schema {
	t.Helper()
	s, err := c.Compile(docURL + "#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func officialSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	body, err := os.ReadFile("testdata/asyncapi/3.0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, newCompiler(t, parseJSON(t, body)), "")
}

func TestAsyncAPIFollowsTheSpecification(t *testing.T) {
	official := officialSchema(t)
	doc := readAPI(t)
	if err := official.Validate(doc.root); err != nil {
		t.Errorf("%#v", err)
	}
	doc.object("operations", "retrieve")["action"] = "fetch"
	if err := official.Validate(doc.root); err == nil {
		t.Error("an operation of a made-up action passes: the schema checks nothing")
	}
}

func TestAsyncAPIReferencesResolve(t *testing.T) {
	doc := readAPI(t)
	found := 0
	eachRef(doc.root, func(ref string) {
		found++
		path, local := strings.CutPrefix(ref, "#/")
		if !local || doc.at(strings.Split(path, "/")...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
	if found < 100 {
		t.Errorf("found only %d references", found)
	}
}

func eachRef(v any, visit func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && key == "$ref" {
				visit(s)
			}
			eachRef(value, visit)
		}
	case []any:
		for _, value := range v {
			eachRef(value, visit)
		}
	}
}

func TestAsyncAPIHasEveryOperation(t *testing.T) {
	doc := readAPI(t)
	inSource := stringConstants(t, "Op")
	listed := map[string]bool{}
	for _, o := range Operations() {
		listed[o.Name] = true
		scope := "{kb}"
		if o.TenantScoped {
			scope = TenantScope
		}
		checkOperation(doc, o.Name, RPCSubject("{tenant}", scope, o.Name), typeName(o.Request), typeName(o.Reply))
	}
	const several = "retrieve_all" // retrieve on a subject of its own
	checkOperation(doc, several, RPCSubject("{tenant}", AllScope, OpRetrieve), typeName(RetrieveRequest{}), typeName(RetrieveReply{}))
	for name, op := range inSource {
		if !listed[op] {
			t.Errorf("%s = %q is not among Operations", name, op)
		}
	}
	if len(inSource) != len(listed) {
		t.Errorf("%d operations in ops.go, %d in the table", len(inSource), len(listed))
	}
	for op := range doc.object("operations") {
		if address, _ := doc.at("channels", op, "address").(string); strings.HasPrefix(address, SubjectRPC) && !listed[op] && op != several {
			t.Errorf("operation %s is no constant of ops.go", op)
		}
	}
}

func checkOperation(doc apiDoc, op, address, request, reply string) {
	doc.t.Helper()
	for what, c := range map[string]struct{ got, want any }{
		"address":         {doc.at("channels", op, "address"), address},
		"channel":         {doc.ref("operations", op, "channel"), "#/channels/" + op},
		"action":          {doc.at("operations", op, "action"), "receive"},
		"request message": {doc.ref("channels", op, "messages", "request"), "#/components/messages/" + op + "_request"},
		"request":         {doc.ref("components", "messages", op+"_request", "payload"), "#/components/schemas/" + request},
		"reply message":   {doc.ref("channels", "replies", "messages", op), "#/components/messages/" + op + "_reply"},
		"reply messages":  {fmt.Sprint(doc.at("operations", op, "reply", "messages")), fmt.Sprintf("[map[$ref:#/channels/replies/messages/%s]]", op)},
		"reply":           {fmt.Sprint(doc.at("components", "messages", op+"_reply", "payload")), fmt.Sprintf("map[allOf:[map[$ref:#/components/schemas/Envelope] map[properties:map[data:map[$ref:#/components/schemas/%s]]]]]", reply)},
		"request headers": {doc.ref("components", "messages", op+"_request", "headers"), "#/components/schemas/RequestHeaders"},
		"reply headers":   {doc.ref("components", "messages", op+"_reply", "headers"), "#/components/schemas/ReplyHeaders"},
	} {
		if c.got != c.want {
			doc.t.Errorf("operation %s: %s is %v, want %v", op, what, c.got, c.want)
		}
	}
}

func typeName(v any) string { return reflect.TypeOf(v).Name() }

func TestAsyncAPIHasEveryChannel(t *testing.T) {
	doc := readAPI(t)
	for channel, want := range map[string]string{
		"docs_submit": SubmitSubject("{tenant}", "{kb}"), "docs_delete": DeleteSubject("{tenant}", "{kb}"),
		"events": SubjectEvents + ".{tenant}.{kb}.{doc}.{status}", "uploads": "$O." + UploadBucket("{tenant}") + ".C.{object}",
	} {
		if got := doc.at("channels", channel, "address"); got != want {
			t.Errorf("channel %s has the address %v, want %s", channel, got, want)
		}
	}
	statuses := doc.at("channels", "events", "parameters", "status", "enum")
	if got, want := sorted(statuses), sortedValues(constantsOf(t, "DocumentStatus")); !slices.Equal(got, want) {
		t.Errorf("events have the statuses %v, want %v", got, want)
	}
	text, err := json.Marshal(doc.at("channels", "events"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(DocToken("annual report 2025.pdf"))) {
		t.Errorf("the example of a document token is not %s", DocToken("annual report 2025.pdf"))
	}
}

func TestAsyncAPIHasEveryPublicHeader(t *testing.T) {
	doc := readAPI(t)
	described := map[string]bool{}
	for name := range doc.object("components", "schemas") {
		if strings.HasSuffix(name, "Headers") {
			for header := range doc.object("components", "schemas", name, "properties") {
				described[header] = true
			}
		}
	}
	internal := []string{HeaderTenant, HeaderKB, HeaderKBID, HeaderDoc, HeaderVersion, HeaderFirstAt, HeaderCorrelationID}
	for name, header := range stringConstants(t, "Header") {
		if slices.Contains(internal, header) || strings.HasPrefix(header, "dlq-") {
			continue
		}
		if !described[header] {
			t.Errorf("%s = %q is not described", name, header)
		}
		delete(described, header)
	}
	for header := range described {
		t.Errorf("%q is described, but no constant of headers.go", header)
	}
}

func TestAsyncAPIEnumsAreTheConstants(t *testing.T) {
	doc := readAPI(t)
	for _, name := range []string{"Code", "DocumentStatus", "ChunkStatus", "IndexType", "MetadataType", "SearchType", "RerankType"} {
		got, want := sorted(doc.at("components", "schemas", name, "enum")), sortedValues(constantsOf(t, name))
		if len(want) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func sorted(list any) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	slices.Sort(out)
	return out
}

func sortedValues(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}
