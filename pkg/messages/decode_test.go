package messages

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestDecodeStrictNamesWhatItRefuses(t *testing.T) {
	rrf := func(k string) string {
		return `{"retrievalConfiguration":{"rerankingConfiguration":{"rrfConfiguration":{"k":` + k + `}}}}`
	}
	const atK = "retrievalConfiguration.rerankingConfiguration.rrfConfiguration.k"
	for _, c := range []struct {
		name, body    string
		into          any
		field, reason string
	}{
		{"an unknown key", `{"maxResult":1}`, new(Page), "maxResult", "known"},
		{"an unknown key inside", `{"retrievalQuery":{"txt":"a"}}`, new(RetrieveRequest), "retrievalQuery.txt", "known"},
		{"an unknown key in an array", `{"metadata":[{"name":"a"},{"nam":"b"}]}`, new(CreateKB), "metadata[1].nam", "known"},
		{"an unknown key in an array of the body", `[{"name":"a"},{"nam":"b"}]`, new(MetadataSchema), "[1].nam", "known"},
		{"another case", `{"MaxResults":1}`, new(Page), "MaxResults", "known"},
		{"the Go name", `{"KnowledgeBaseName":"a"}`, new(KBRef), "KnowledgeBaseName", "known"},
		{"the Go name of an embedded struct", `{"Page":{}}`, new(ListChunks), "Page", "known"},
		{"a key twice", `{"maxResults":1,"maxResults":1}`, new(Page), "maxResults", "twice"},
		{"a key twice, once escaped", `{"maxResults":1,"m\u0061xResults":1}`, new(Page), "maxResults", "twice"},
		{"a key twice inside", `{"retrievalQuery":{"type":"a","type":"a"}}`, new(RetrieveRequest), "retrievalQuery.type", "twice"},
		{"a string for an integer", `{"maxResults":"1"}`, new(ListDocuments), "maxResults", "must be an integer, got string"},
		{"a fraction for an integer", `{"maxResults":1.5}`, new(Page), "maxResults", "must be an integer"},
		{"an integer out of range", `{"id":9223372036854775808}`, new(DeadLetterRef), "id", "must be an integer"},
		{"a fraction for an integer", `{"maxResults":20.0}`, new(ListDocuments), "maxResults", "must be an integer, got 20.0"},
		{"an integer out of range", `{"maxResults":9223372036854775808}`, new(ListDocuments), "maxResults", "must be an integer within its range, got 9223372036854775808"},
		{"a number out of range", `{"retrievalConfiguration":{"fullTextSearchConfiguration":{"k1":1e999}}}`, new(RetrieveRequest), "retrievalConfiguration.fullTextSearchConfiguration.k1", "is out of range: 1e999"},
		{"a number for a string", `{"metadata":[{"name":"a"},{"name":1}]}`, new(CreateKB), "metadata[1].name", "must be a string, got number"},
		{"a number in an array of strings", `{"subspace":["a",1]}`, new(ListDocuments), "subspace[1]", "must be a string"},
		{"null in an array of strings", `{"subspace":["a",null]}`, new(ListDocuments), "subspace[1]", "must be a string, got null"},
		{"null in an array of numbers", `{"retrievalQuery":{"type":"TEXT","vector":[0.1, null]}}`, new(RetrieveRequest), "retrievalQuery.vector[1]", "must be a number, got null"},
		{"null in an array of objects", `{"metadata":[{"name":"a","type":"long"} ,null ]}`, new(CreateKB), "metadata[1]", "must be an object, got null"},
		{"a string for an array", `{"subspace":"a"}`, new(ListDocuments), "subspace", "must be an array, got string"},
		{"a string for an object", `{"retrievalQuery":"a"}`, new(RetrieveRequest), "retrievalQuery", "must be an object, got string"},
		{"an array for an object", `{"retrievalQuery":["a"]}`, new(RetrieveRequest), "retrievalQuery", "must be an object, got array"},
		{"an object for an array", `{"metadata":{"a":1}}`, new(CreateKB), "metadata", "must be an array, got object"},
		{"a number for a boolean", `{"explain":1}`, new(RetrieveRequest), "explain", "must be a boolean"},
		{"a number in a map of strings", `{"tags":{"a":1}}`, new(CreateKB), "tags", "must be a string"},
		{"digits in quotes for a number", rrf(`"60"`), new(RetrieveRequest), atK, "must be a number"},
		{"a word for a number", rrf(`"many"`), new(RetrieveRequest), atK, "must be a number"},
		{"a boolean for a number", rrf(`true`), new(RetrieveRequest), atK, "must be"},
		{"what is not base64", `{"data":"!!"}`, new(Submit), "data", "is not base64"},
		{"an array for bytes", `{"data":[1]}`, new(Submit), "data", "must be base64"},
		{"an array as the body", `[]`, new(Page), "body", "must be an object, got array"},
		{"a string as the body", `"a"`, new(Page), "body", "must be an object, got string"},
		{"a second value", `{} {}`, new(Page), "body", "more than one"},
		{"rubbish after the value", `{}}`, new(Page), "body", "more than one"},
		{"a cut value", `{"maxResults":1`, new(Page), "body", "not valid JSON"},
		{"a key without quotes", `{maxResults:1}`, new(Page), "body", "not valid JSON"},
		{"nothing", ``, new(Page), "body", "is empty"},
		{"spaces", "  \n", new(Page), "body", "is empty"},
		{"invalid UTF-8", "{\"nextToken\":\"\xc3\"}", new(Page), "body", "UTF-8"},
		{"half of a surrogate pair", `{"nextToken":"\ud83d"}`, new(Page), "body", "surrogate"},
		{"the wrong half first", `{"nextToken":"\ude00\ud83d"}`, new(Page), "body", "surrogate"},
		{"half of a pair in a raw value", `{"metadata":{"a":"\ud83d!"}}`, new(Submit), "body", "surrogate"},
		{"deep nesting", strings.Repeat("[", MaxJSONDepth+1), new(Page), "body", "nested deeper"},
		{"deep nesting in a raw value", `{"metadata":` + strings.Repeat(`{"a":`, MaxJSONDepth) + "1" + strings.Repeat("}", MaxJSONDepth+1), new(Submit), "body", "nested deeper"},
	} {
		err := DecodeStrict([]byte(c.body), c.into)
		wantField(t, c.name, err, c.field)
		if e, ok := AsError(err); ok && (e.Code != CodeValidation || !strings.Contains(e.Message, c.reason)) {
			t.Errorf("%s: got %v, want %s saying %q", c.name, e, CodeValidation, c.reason)
		}
	}
}

func TestDecodeStrictTakesWhatIsRight(t *testing.T) {
	for _, c := range []struct {
		name, body string
		into, want any
	}{
		{"null is absent", `{"retrievalQuery":null,"subspace":null}`, new(RetrieveRequest), new(RetrieveRequest)},
		{"an embedded key", `{"maxResults":3,"subspace":["a"]}`, new(ListDocuments), &ListDocuments{Subspace: []string{"a"}, Page: Page{MaxResults: 3}}},
		{"an escaped key", `{"m\u0061xResults":3}`, new(Page), &Page{MaxResults: 3}},
		{"a surrogate pair", `{"nextToken":"\ud83d\ude00"}`, new(Page), &Page{NextToken: "😀"}},
		{"an escaped backslash before a u", `{"nextToken":"\\ud83d"}`, new(Page), &Page{NextToken: `\ud83d`}},
		{"brackets in strings", `{"nextToken":"` + strings.Repeat("[", 100) + `"}`, new(Page), &Page{NextToken: strings.Repeat("[", 100)}},
		{"space around", " {} \n", new(Page), new(Page)},
		{"an empty array", `{"metadata":[]}`, new(CreateKB), &CreateKB{Metadata: MetadataSchema{}}},
		{
			"any keys in raw values and maps", `{"knowledgeBaseName":"a","tags":{"Any":"x"},"retrievalConfiguration":{"x":{"x":1}}}`, new(CreateKB),
			&CreateKB{KnowledgeBaseName: "a", Tags: map[string]string{"Any": "x"}, Retrieval: raw(`{"x":{"x":1}}`)},
		},
		{
			"numbers as they were written", `{"docId":"a","metadata":{"n":9007199254740993,"e":6e1,"f":60.0}}`, new(Submit),
			&Submit{DocID: "a", Metadata: raw(`{"n":9007199254740993,"e":6e1,"f":60.0}`)},
		},
	} {
		if err := DecodeStrict([]byte(c.body), c.into); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !reflect.DeepEqual(c.into, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, c.into, c.want)
		}
	}
}

func TestDecodeStrictKeepsNumbersOfOpenFields(t *testing.T) {
	var v struct {
		Any any `json:"any"`
	}
	if err := DecodeStrict([]byte(`{"any":9007199254740993}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.Any != json.Number("9007199254740993") {
		t.Errorf("got %v (%T)", v.Any, v.Any)
	}
}

// Errors quote input, so they are cut whatever its size.
func TestErrorsStaySmallWhateverTheBody(t *testing.T) {
	mega := strings.Repeat("k", 1<<20)
	for _, body := range []string{`{"` + mega + `":1}`, `{"nextToken":` + strings.Repeat("1", 1<<20) + `}`, `{"` + strings.Repeat("é", 1<<19) + `":1}`} {
		e, ok := AsError(DecodeStrict([]byte(body), new(Page)))
		if !ok {
			t.Fatalf("%.20s: no error", body)
		}
		if n := len(e.Error()); n > 1400 || !utf8.ValidString(e.Error()) {
			t.Errorf("%.20s: an error of %d bytes", body, n)
		}
	}
}

// hostile are bodies of about n bytes meant to cost more than their size.
func hostile(n int) map[string]struct {
	body string
	into any
} {
	type c = struct {
		body string
		into any
	}
	fill := func(open, unit, end string) string {
		return open + strings.Repeat(unit, (n-len(open)-len(end))/len(unit)) + end
	}
	return map[string]c{
		"empty objects":       {fill(`{"metadata":[`, `{},`, `{}]}`), new(CreateKB)},
		"full objects":        {fill(`{"metadata":[`, `{"name":"a","type":"long"},`, `{}]}`), new(CreateKB)},
		"nulls":               {fill(`{"metadata":[`, `null,`, `null]}`), new(CreateKB)},
		"short strings":       {fill(`{"subspace":[`, `"a",`, `1]}`), new(ListDocuments)},
		"escapes":             {fill(`{"text":"`, `\u0041`, `"}`), new(Submit)},
		"quotes":              {fill(`{"text":"`, `\"`, `"}`), new(Submit)},
		"a long key":          {fill(`{"`, `k`, `":1}`), new(Page)},
		"the same key":        {fill(`{`, `"nextToken":"",`, `"nextToken":""}`), new(Page)},
		"a long number":       {fill(`{"maxResults":`, `1`, `}`), new(Page)},
		"keys of a raw value": {fill(`{"metadata":{`, `"a":1,`, `"a":1}}`), new(Submit)},
		"lists in lists":      {fill(`{"metadata":`+strings.Repeat(`{"a":`, 60)+`[`, `[],`, `[]]`+strings.Repeat(`}`, 60)+`}`), new(Submit)},
		"tags":                {fill(`{"tags":{`, `"a":"b",`, `"a":1}}`), new(CreateKB)},
		"spaces":              {fill(`{`, ` `, `}`), new(Page)},
		"open brackets":       {strings.Repeat("[", n), new(Page)},
	}
}

// Quadratic work on these would take tens of seconds each; BenchmarkDecodeStrict1MB has the real figures.
func TestDecodeStrictIsLinear(t *testing.T) {
	for name, c := range hostile(256 << 10) {
		began := time.Now()
		_ = DecodeStrict([]byte(c.body), c.into)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: %d bytes took %s", name, len(c.body), took)
		}
	}
}

func BenchmarkDecodeStrict1MB(b *testing.B) {
	for name, c := range hostile(1 << 20) {
		b.Run(name, func(b *testing.B) {
			body := []byte(c.body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_ = DecodeStrict(body, c.into)
			}
		})
	}
}

// FuzzDecodeStrict: never a panic, every error typed and small, and what is accepted is what plain JSON
// decoding makes of it.
func FuzzDecodeStrict(f *testing.F) {
	for _, m := range all {
		body, err := Encode(m.value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{``, `null`, `[{}]`, `{"a":`, `{"docId":"\ud800"}`, `{"metadata":[{"name":1}]}`, `]]]{`, `{"docId":"a","docId":"b"}`, "\"\xff\""} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, m := range all {
			if !m.strict {
				continue
			}
			kind := reflect.TypeOf(m.value).Elem()
			got, plain := reflect.New(kind).Interface(), reflect.New(kind).Interface()
			if err := DecodeStrict(body, got); err != nil {
				if e, ok := AsError(err); !ok || e.Code != CodeValidation || len(e.Error()) > 1400 {
					t.Fatalf("%s: %v", m.golden, err)
				}
				continue
			}
			if err := json.Unmarshal(body, plain); err != nil || !reflect.DeepEqual(got, plain) {
				t.Fatalf("%s: got %+v, plain decoding %+v, %v", m.golden, got, plain, err)
			}
		}
	})
}

// FuzzDecodeSubmit: what is accepted keeps the bounds, and reads back from its own JSON.
func FuzzDecodeSubmit(f *testing.F) {
	f.Add([]byte(`{"docId":"a","text":"x"}`), "")
	f.Add([]byte(`{"_id":"a","data":"eA=="}`), "")
	f.Add([]byte(`{"ossKey":"k","upload":{"object":"o","size":1}}`), "")
	f.Add([]byte("raw"), "a%20b")
	f.Fuzz(func(t *testing.T, body []byte, id string) {
		s, err := DecodeSubmit(rawForm{Headers: map[string]string{HeaderDocID: id}}.get, body)
		if err != nil {
			if _, ok := AsError(err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if s.DocID == "" || len(s.DocID) > MaxDocIDBytes || strings.ContainsAny(DocToken(s.DocID), ".*> ") {
			t.Fatalf("accepted doc id %q", s.DocID)
		}
		again, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Data) == 0 && s.Data != nil {
			return // empty bytes have no JSON form
		}
		if _, err := DecodeSubmit(none, again); err != nil {
			t.Fatalf("%s does not read back: %v", again, err)
		}
	})
}
