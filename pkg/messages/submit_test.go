package messages

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

const (
	goldenRawSubmit = "submit_raw"
	goldenRawDelete = "delete_raw"
)

// rawForm is a publish with a raw body: headers as on the wire and the body in base64.
type rawForm struct {
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

func (r rawForm) get(name string) string { return r.Headers[name] }

func rawSubmit() rawForm {
	return rawForm{Body: []byte("%PDF-1.7\n"), Headers: map[string]string{
		HeaderDocID: url.PathEscape("annual report 2025.pdf"), HeaderSubspace: "legal", HeaderOSSKey: url.PathEscape("s3/2025/annual.pdf"),
		HeaderTitle: url.PathEscape("Annual report – 年报"), HeaderContentType: "application/pdf",
		HeaderMetadata: url.PathEscape(`{"pages":9007199254740993,"lang":["en","zh"]}`),
	}}
}

func rawDelete() rawForm {
	return rawForm{Headers: map[string]string{HeaderDocID: url.PathEscape("annual report 2025.pdf"), HeaderSubspace: "legal"}}
}

func TestRawFormsAreTheGoldens(t *testing.T) {
	for name, form := range map[string]rawForm{goldenRawSubmit: rawSubmit(), goldenRawDelete: rawDelete()} {
		body, err := Encode(form)
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, name, body)
	}
}

func TestBothFormsOfASubmitMeanTheSame(t *testing.T) {
	var form rawForm
	if err := json.Unmarshal(readGolden(t, goldenRawSubmit), &form); err != nil {
		t.Fatal(err)
	}
	fromHeaders, err := DecodeSubmit(form.get, form.Body)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := DecodeSubmit(none, compact(t, readGolden(t, "submit_data")))
	if err != nil {
		t.Fatal(err)
	}
	fromJSON.Tenant, fromJSON.KnowledgeBaseName = "", "" // the subject's business
	if !reflect.DeepEqual(fromHeaders, fromJSON) {
		t.Errorf("got %+v, want %+v", fromHeaders, fromJSON)
	}
}

func TestBothFormsOfADeleteMeanTheSame(t *testing.T) {
	fromHeaders, err := DecodeDelete(rawDelete().get, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Delete{DocID: "annual report 2025.pdf", Subspace: "legal"}
	if !reflect.DeepEqual(fromHeaders, want) {
		t.Errorf("got %+v, want %+v", fromHeaders, want)
	}
	fromJSON, err := DecodeDelete(none, []byte(`{"docId":"annual report 2025.pdf","subspace":"legal"}`))
	if err != nil || !reflect.DeepEqual(fromJSON, want) {
		t.Errorf("got %+v, %v, want %+v", fromJSON, err, want)
	}
}

func TestSubmitTakesItsIDFromWhatIsThere(t *testing.T) {
	for body, want := range map[string]string{
		`{"docId":"a","text":"x"}`:                               "a",
		`{"_id":"b","text":"x"}`:                                 "b",
		`{"_id":"b","docId":"a","text":"x"}`:                     "a",
		`{"ossKey":"k.txt","text":"x"}`:                          IDFromOSSKey("", "k.txt"),
		`{"ossKey":"k.txt","docId":"","text":"x"}`:               IDFromOSSKey("", "k.txt"),
		`{"ossKey":"k.txt","subspace":"s1","data":"eA=="}`:       IDFromOSSKey("s1", "k.txt"),
		`{"docId":"a","text":""}`:                                "a", // an empty document is the parser's verdict
		`{"docId":"a","upload":{"object":"o","size":1}}`:         "a",
		`{"docId":"` + strings.Repeat("a", 512) + `","text":""}`: strings.Repeat("a", 512),
	} {
		s, err := DecodeSubmit(none, []byte(body))
		if err != nil {
			t.Errorf("%.80s: %v", body, err)
			continue
		}
		if s.DocID != want {
			t.Errorf("%.80s: doc id %q, want %q", body, s.DocID, want)
		}
	}
}

func TestRefusedSubmitsNameTheField(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct{ body, field string }{
		{`{"text":"x"}`, "docId"},
		{`{"docId":"","text":"x"}`, "docId"},
		{`{"docId":"` + long(513) + `","text":"x"}`, "docId"},
		{`{"docId":"a\u0000b","text":"x"}`, "docId"},
		{`{"docId":"a"}`, "text"},
		{`{"docId":"a","text":"x","data":"eA=="}`, "text"},
		{`{"docId":"a","text":"a\u0000b"}`, "text"},
		{`{"docId":"a","text":7}`, "text"},
		{`{"docId":"a","data":"%"}`, "data"},
		{`{"docId":"a","data":[1,2]}`, "data"},
		{`{"docId":"a","upload":{"object":"","size":1}}`, "upload.object"},
		{`{"docId":"a","upload":{"object":"` + long(257) + `","size":1}}`, "upload.object"},
		{`{"docId":"a","upload":{"object":"o","size":1.5}}`, "upload.size"},
		{`{"docId":"a","upload":{"name":"o"}}`, "upload.name"},
		{`{"docId":"a","text":"x","subspace":"Upper"}`, "subspace"},
		{`{"docId":"a","text":"x","subspace":"_"}`, "subspace"},
		{`{"docId":"a","text":"x","title":"` + long(4097) + `"}`, "title"},
		{`{"docId":"a","text":"x","title":"a\u0000"}`, "title"},
		{`{"docId":"a","text":"x","ossKey":"` + long(1025) + `"}`, "ossKey"},
		{`{"docId":"a","text":"x","contentType":"` + long(257) + `"}`, "contentType"},
		{`{"docId":"a","text":"x","metadata":{"k":"` + long(64<<10) + `"}}`, "metadata"},
		{`{"docId":"a","text":"x","docID":"b"}`, "docID"},
		{``, "body"},
		{`not json`, "body"},
		{"{\"docId\":\"a\",\"text\":\"\xff\"}", "body"},
	} {
		_, err := DecodeSubmit(none, []byte(c.body))
		wantField(t, c.body, err, c.field)
	}
}

func TestRefusedRawFormsNameTheField(t *testing.T) {
	for _, c := range []struct {
		headers map[string]string
		field   string
	}{
		{map[string]string{HeaderDocID: "%zz"}, HeaderDocID},
		{map[string]string{HeaderDocID: "a", HeaderTitle: "100%"}, HeaderTitle},
		{map[string]string{HeaderDocID: "%00"}, "docId"},
		{map[string]string{HeaderDocID: "%ff"}, "docId"},
		{map[string]string{HeaderDocID: "a", HeaderSubspace: "A"}, "subspace"},
	} {
		_, err := DecodeSubmit(rawForm{Headers: c.headers}.get, []byte("x"))
		wantField(t, c.headers[HeaderDocID], err, c.field)
	}
	_, err := DecodeDelete(rawForm{Headers: map[string]string{HeaderDocID: "%zz"}}.get, nil)
	wantField(t, "delete", err, HeaderDocID)
	_, err = DecodeDelete(none, nil)
	wantField(t, "empty delete", err, "docId")
	_, err = DecodeDelete(none, []byte(`{"docId":"a","subspace":"_all"}`))
	wantField(t, "delete in a reserved subspace", err, "subspace")
}

func TestJSONThatIsNoUTF8IsOneErrorAtBothDoors(t *testing.T) {
	body := []byte("{\"docId\":\"a\xff\",\"text\":\"x\"}")
	_, submit := DecodeSubmit(none, body)
	_, remove := DecodeDelete(none, body)
	for door, err := range map[string]error{"submit": submit, "delete": remove} {
		if e, ok := AsError(err); !ok || e.Code != CodeInvalidEncoding || e.Field != "body" {
			t.Errorf("%s: got %v, want INVALID_ENCODING of the body", door, err)
		}
	}
}

func TestAnEmptyRawBodyIsAnEmptyDocument(t *testing.T) {
	s, err := DecodeSubmit(rawForm{Headers: map[string]string{HeaderDocID: "a"}}.get, nil)
	if err != nil || s.Data == nil || len(s.Data) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// The version 5 UUIDs are those of Python's uuid.uuid5(uuid.NAMESPACE_URL, "<subspace>/<key>").
func TestIDFromOSSKeyIsTheUUIDOfSubspaceAndKey(t *testing.T) {
	for _, c := range []struct{ subspace, key, want string }{
		{"", "k.txt", "e11d9fd6-3813-5896-97ab-97d3eb9246c8"},
		{"_default", "k.txt", "e11d9fd6-3813-5896-97ab-97d3eb9246c8"},
		{"s1", "k.txt", "a3b26de1-994e-5d7c-9d28-5ebd1c3be0dc"},
		{"legal", "s3/2025/annual report.pdf", "23a16ed1-9a10-52ff-98f4-f3b8119686e8"},
		{"", "年报.pdf", "823e81ad-35da-5621-9332-cfeee126d853"},
	} {
		if got := IDFromOSSKey(c.subspace, c.key); got != c.want {
			t.Errorf("IDFromOSSKey(%q, %q) = %s, want %s", c.subspace, c.key, got, c.want)
		}
	}
}

func none(string) string { return "" }

// wantField checks that err is a permanent error about field.
func wantField(t *testing.T, what string, err error, field string) {
	t.Helper()
	e, ok := AsError(err)
	if !ok {
		t.Errorf("%.100s: got %v, want an error of %s", what, err, field)
		return
	}
	if e.Field != field {
		t.Errorf("%.100s: error %.200s is about %.100q, want %q", what, e, e.Field, field)
	}
}
