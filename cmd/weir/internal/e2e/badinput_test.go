package e2e_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// bad is a submit that must end in a typed error.
type bad struct {
	name   string
	kb     string      // "": docs
	header nats.Header // of a raw body
	body   string
	code   messages.Code
	field  string
	doc    string // it was for; "": none
	parse  bool   // accepted, and refused when it is read
	stream bool   // only wrong there
}

func raw(pairs ...string) nats.Header {
	h := nats.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

func zipWith(t testing.TB, name, content string) string {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

const docxType = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

// badInputs is what people send by mistake or malice.
func badInputs(t testing.TB) []bad {
	const validation, doc = messages.CodeValidation, "victim"
	inJSON := func(name, body, field string) bad {
		return bad{name: name, body: body, code: validation, field: field, doc: doc}
	}
	return append([]bad{
		{name: "unknown kb", kb: "nowhere", body: `{"docId":"victim","text":"x"}`, code: messages.CodeKBNotFound, field: "knowledgeBaseName", doc: doc},
		{name: "reserved kb", kb: "_", body: `{"docId":"victim","text":"x"}`, code: validation, field: "knowledgeBaseName", doc: doc},
		{name: "all kbs", kb: "_all", body: `{"docId":"victim","text":"x"}`, code: validation, field: "knowledgeBaseName", doc: doc},
		{name: "kb in capitals", kb: "Docs", body: `{"docId":"victim","text":"x"}`, code: validation, field: "knowledgeBaseName", doc: doc},
		{name: "invalid JSON", body: `{"docId":"victim","text":`, code: validation, field: "body"},
		{name: "not an object", body: `[1]`, code: validation, field: "body"},
		{name: "no body", body: ``, code: validation, field: "body"},
		{name: "deep JSON", body: `{"docId":"victim","text":"x","metadata":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`, code: validation, field: "body", doc: doc},
		{name: "invalid UTF-8 in JSON", body: "{\"docId\":\"victim\",\"text\":\"a\xff\xfeb\"}", code: messages.CodeInvalidEncoding, field: "body"},
		{name: "half a surrogate pair", body: `{"docId":"victim","text":"a\ud800b"}`, code: validation, field: "body", doc: doc},
		{name: "wrong content type", body: `{"docId":"victim","contentType":"image/png","text":"x"}`, code: messages.CodeUnsupportedMediaType, field: "contentType", doc: doc, parse: true},
		{name: "content type is none", body: `{"docId":"victim","contentType":"no type at all","text":"x"}`, code: messages.CodeUnsupportedMediaType, field: "contentType", doc: doc, parse: true},
		{name: "empty document", body: `{"docId":"victim","text":""}`, code: messages.CodeEmptyDocument, field: "text", doc: doc, parse: true},
		{name: "document of signs", body: `{"docId":"victim","text":" \n\n--- ... !!! \n"}`, code: messages.CodeEmptyDocument, field: "text", doc: doc, parse: true},
		{name: "empty raw body", header: raw("Weir-Doc-Id", doc), code: messages.CodeEmptyDocument, field: "text", doc: doc, parse: true},
		{name: "invalid UTF-8 raw", header: raw("Weir-Doc-Id", doc, "Content-Type", "text/plain; charset=utf-8"), body: "a\xff\xffb", code: messages.CodeInvalidEncoding, field: "text", doc: doc, parse: true},
		{name: "zip that is no docx", header: raw("Weir-Doc-Id", doc, "Content-Type", docxType), body: zipWith(t, "notes.txt", "no document"), code: messages.CodeUnsupportedMediaType, field: "contentType", doc: doc, parse: true},
		{name: "broken zip", header: raw("Weir-Doc-Id", doc, "Content-Type", docxType), body: zipWith(t, "word/document.xml", "<w:document/>")[:60], code: messages.CodeDamagedDocument, field: "text", doc: doc, parse: true},
		{name: "docx that is text", header: raw("Weir-Doc-Id", doc, "Content-Type", docxType), body: "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e", code: messages.CodeDamagedDocument, field: "text", doc: doc, parse: true},
		{name: "pdf that is none", header: raw("Weir-Doc-Id", doc, "Content-Type", "application/pdf"), body: "%PDF-1.7\nnothing follows", code: messages.CodeDamagedDocument, field: "text", doc: doc, parse: true},
		{name: "NUL bytes raw", header: raw("Weir-Doc-Id", doc, "Content-Type", "text/plain"), body: strings.Repeat("ab\x00\x01", 100), code: messages.CodeUnsupportedMediaType, field: "contentType", doc: doc, parse: true},
		{name: "header of two values", header: raw("Weir-Doc-Id", doc, "Weir-Title", "a", "Weir-Title", "b"), body: "x", code: validation, field: "headers"},
		{name: "header not encoded", header: raw("Weir-Doc-Id", doc, "Weir-Title", "100%"), body: "x", code: validation, field: "Weir-Title", doc: doc},
		{name: "header with NUL", header: raw("Weir-Doc-Id", doc, "Weir-Title", "a%00b"), body: "x", code: validation, field: "title", doc: doc},
		{name: "id with NUL in header", header: raw("Weir-Doc-Id", "a%00b"), body: "x", code: validation, field: "docId"},
		{name: "id too long in header", header: raw("Weir-Doc-Id", strings.Repeat("x", 600)), body: "x", code: validation, field: "docId"},
		{name: "subspace of several lines in header", header: raw("Weir-Doc-Id", doc, "Weir-Subspace", "a%0Ab"), body: "x", code: validation, field: "subspace", doc: doc},
		{name: "wildcard subspace in header", header: raw("Weir-Doc-Id", doc, "Weir-Subspace", ">"), body: "x", code: validation, field: "subspace", doc: doc},
		{name: "subject tokens in subspace", header: raw("Weir-Doc-Id", doc, "Weir-Subspace", "a.*.b"), body: "x", code: validation, field: "subspace", doc: doc},
		{name: "another tenant in the tenant header", header: raw("Weir-Doc-Id", doc, "tenant", "other"), body: "x", code: validation, field: "tenant", doc: doc, stream: true},
		{name: "metadata header no JSON", header: raw("Weir-Doc-Id", doc, "Weir-Metadata", "{year"), body: "x", code: validation, field: "metadata", doc: doc},
	},
		inJSON("no content", `{"docId":"victim"}`, "text"),
		inJSON("two contents", `{"docId":"victim","text":"x","data":"eA=="}`, "text"),
		inJSON("unknown key", `{"docId":"victim","text":"x","colour":"red"}`, "colour"),
		inJSON("key twice", `{"docId":"victim","text":"x","text":"y"}`, "text"),
		inJSON("text no string", `{"docId":"victim","text":7}`, "text"),
		inJSON("data no base64", `{"docId":"victim","data":"***"}`, "data"),
		inJSON("metadata against the schema", `{"docId":"victim","text":"x","metadata":{"year":"old"}}`, "metadata.year"),
		inJSON("metadata undeclared", `{"docId":"victim","text":"x","metadata":{"colour":"red"}}`, "metadata.colour"),
		inJSON("metadata no object", `{"docId":"victim","text":"x","metadata":[1]}`, "metadata"),
		inJSON("metadata too large", `{"docId":"victim","text":"x","metadata":{"of":"`+strings.Repeat("m", 70_000)+`"}}`, "metadata"),
		inJSON("U+0000 in text", `{"docId":"victim","text":"a\u0000b"}`, "text"),
		inJSON("U+0000 in title", `{"docId":"victim","title":"a\u0000b","text":"x"}`, "title"),
		inJSON("U+0000 in metadata", `{"docId":"victim","text":"x","metadata":{"of":"a\u0000b"}}`, "metadata.of"),
		inJSON("U+0000 in a metadata name", `{"docId":"victim","text":"x","metadata":{"o\u0000f":"b"}}`, "metadata.o f"),
		inJSON("another kb", `{"docId":"victim","knowledgeBaseName":"other","text":"x"}`, "knowledgeBaseName"),
		inJSON("another tenant", `{"docId":"victim","tenant":"other","text":"x"}`, "tenant"),
		inJSON("title too long", `{"docId":"victim","text":"x","title":"`+strings.Repeat("t", 5000)+`"}`, "title"),
		inJSON("subspace where there are none", `{"docId":"victim","subspace":"left","text":"x"}`, "subspace"),
		inJSON("reserved subspace", `{"docId":"victim","subspace":"_all","text":"x"}`, "subspace"),
		inJSON("subspace of several lines", `{"docId":"victim","subspace":"a\nb","text":"x"}`, "subspace"),
		inJSON("missing upload", `{"docId":"victim","upload":{"object":"nothing","size":3}}`, "upload.object"),
		bad{name: "U+0000 in id", body: `{"docId":"a\u0000b","text":"x"}`, code: validation, field: "docId"},
		bad{name: "no id", body: `{"text":"x"}`, code: validation, field: "docId"},
		bad{name: "id too long", body: `{"docId":"` + strings.Repeat("x", 513) + `","text":"x"}`, code: validation, field: "docId"},
	)
}

func (b bad) kbName() string {
	if b.kb != "" {
		return b.kb
	}
	return "docs"
}

var badSchema = messages.MetadataSchema{{Name: "year", Type: messages.TypeLong}, {Name: "of", Type: messages.TypeString}}

// badStream publishes everything bad, each with a good document right behind it.
func badStream(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Metadata: badSchema})
	ev := s.watch("*")
	cases := badInputs(s.t)
	for i, b := range cases {
		if b.doc != "" && b.parse { // each its own, or one overtakes the other
			b.doc = fmt.Sprintf("victim-%d", i)
			b.body = strings.Replace(b.body, `"victim"`, `"`+b.doc+`"`, 1)
			if b.header != nil {
				b.header["Weir-Doc-Id"] = []string{b.doc}
			}
			cases[i] = b
		}
		s.publishRaw(b.kbName(), fmt.Sprintf("bad-%d", i), b.header, []byte(b.body))
		s.publish("docs", fmt.Sprintf("good-%d", i), doc(i))
	}
	for i := range cases {
		ev.ready(fmt.Sprintf("good-%d", i))
		ev.end(fmt.Sprintf("bad-%d", i))
	}
	letters := map[string]messages.DeadLetter{}
	for _, d := range s.deadLetters("") {
		detail, err := call[messages.DeadLetterDetail](s, messages.TenantScope, messages.OpDLQGet, messages.DeadLetterRef{ID: d.ID})
		if err != nil {
			s.t.Fatal(err)
		}
		id := strings.TrimPrefix(detail.Headers[messages.HeaderDeadMsgID], s.msgID(""))
		if d.Stage != messages.StageIntake {
			id = "bad-" + strings.TrimPrefix(d.DocID, "victim-")
		}
		if _, twice := letters[id]; twice {
			s.t.Errorf("submit %s has two dead letters", id)
		}
		letters[id] = d
	}
	if len(letters) != len(cases) {
		s.t.Errorf("dead letters: got %d, want %d", len(letters), len(cases))
	}
	for i, b := range cases {
		id := fmt.Sprintf("bad-%d", i)
		checkBad(s, b, ev.end(id), letters[id])
		token := messages.NoDocument
		if b.doc != "" {
			token = b.doc
		}
		if want := messages.SubjectEvents + "." + s.tenant + "." + b.kbName() + "." + token + ".Failed"; ev.last[id] != want {
			s.t.Errorf("%s: event on %s, want %s", b.name, ev.last[id], want)
		}
	}
	s.settled()
}

// checkBad checks the event and the dead letter of a bad submit.
func checkBad(s *system, b bad, e messages.Event, d messages.DeadLetter) {
	stage := messages.StageIntake
	if b.parse {
		stage = messages.StageParse
	}
	if e.Status != messages.StatusFailed || e.Error == nil {
		s.t.Errorf("%s: got %+v, want Failed with an error", b.name, e)
		return
	}
	if e.Error.Code != b.code || e.Error.Field != b.field || e.Error.Message == "" || e.Error.Stage != stage || e.Attempt != 1 {
		s.t.Errorf("%s: event says %+v at attempt %d, want %s of field %q in stage %s at attempt 1", b.name, *e.Error, e.Attempt, b.code, b.field, stage)
	}
	if d.Error != *e.Error || d.Attempts != 1 || d.Stage != stage || d.KB != b.kbName() || d.DocID != b.doc {
		s.t.Errorf("%s: dead letter is %+v, want that of the event %+v in %s for %q", b.name, d, *e.Error, b.kbName(), b.doc)
	}
}

// badRequests makes the same as requests: the reply says what is wrong, and nothing is dead-lettered but
// what is found on reading.
func badRequests(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", Metadata: badSchema})
	ev := s.watch("*")
	letters := 0
	for i, b := range badInputs(s.t) {
		header := bus.Header{messages.HeaderIdempotencyKey: fmt.Sprintf("bad-%d", i)}
		if b.stream || s.rawRequest(b, header) {
			continue
		}
		for name, values := range b.header {
			header[name] = values[0]
		}
		reply, err := s.request(b.kbName(), messages.OpSubmit, header, []byte(b.body))
		if !b.parse {
			field := b.field
			if b.name == "U+0000 in a metadata name" { // replies are JSON and need not clean it
				field = "metadata.o\x00f"
			}
			isError(s.t, b.name, err, b.code, field)
		} else {
			if err != nil || reply.Status != messages.StatusPending {
				s.t.Errorf("%s: got %+v, %v; want Pending", b.name, reply, err)
				continue
			}
			letters++
			e := ev.end(reply.SubmitID)
			if e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != b.code || e.Attempt != 1 {
				s.t.Errorf("%s: got %+v, want Failed with %s at attempt 1", b.name, e, b.code)
			}
		}
	}
	if got := len(s.deadLetters("")); got != letters {
		s.t.Errorf("dead letters: got %d, want %d", got, letters)
	}
	if reply, err := s.request("docs", messages.OpSubmit, nil, doc(1)); err != nil || ev.end(reply.SubmitID).Status != messages.StatusReady {
		s.t.Errorf("a good document: got %+v, %v", reply, err)
	}
}

// rawRequest makes requests whose headers have several values; false for the others.
func (s *system) rawRequest(b bad, header bus.Header) bool {
	s.t.Helper()
	several := false
	msg := nats.NewMsg(messages.RPCSubject(s.tenant, b.kbName(), messages.OpSubmit))
	msg.Data = []byte(b.body)
	for name, value := range header {
		msg.Header[name] = []string{value}
	}
	for name, values := range b.header {
		several = several || len(values) > 1
		msg.Header[name] = values
	}
	if !several {
		return false
	}
	reply, err := s.nc.RequestMsg(msg, testkit.Patience)
	if err != nil {
		s.t.Fatalf("%s: %v", b.name, err)
	}
	if env := decodeEnvelope(s.t, reply.Data); env.Code != b.code || env.Field != b.field {
		s.t.Errorf("%s: got %+v, want %s of field %q", b.name, env, b.code, b.field)
	}
	return true
}

// strangeSubjects publishes where no tenant or knowledge base can be.
func strangeSubjects(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	for i, subject := range []string{
		messages.SubmitSubject(s.tenant, "d\xff\xfec"),
		messages.SubmitSubject("\xff\xfe", "docs"),
		messages.SubmitSubject("_", "docs"),
		messages.SubmitSubject(strings.ToUpper(s.tenant), "docs"),
		messages.SubmitSubject(s.tenant, strings.Repeat("k", 900)),
		messages.DeleteSubject(s.tenant, "d\xff\xfec"),
	} {
		strange := fmt.Sprintf("strange-%d", i)
		msg := &nats.Msg{Subject: subject, Data: []byte(`{"docId":"` + strange + `","text":"x"}`)}
		if strings.HasPrefix(subject, messages.SubjectDelete) {
			msg.Data = []byte(`{"docId":"` + strange + `"}`)
		}
		if _, err := s.js.PublishMsg(s.t.Context(), msg); err != nil {
			s.t.Errorf("publish to %q: %v", subject, err)
			continue
		}
		s.publish("docs", fmt.Sprintf("good-%d", i), doc(i))
		ev.ready(fmt.Sprintf("good-%d", i))
		s.awaitCount(1, "SELECT count(*) FROM dead_letters WHERE attempts = 1 AND error->>'code' = 'VALIDATION_ERROR' AND doc_id = $1", strange)
	}
}

// badDeletes are deletes that cannot be done.
func badDeletes(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("*")
	for i, c := range []struct {
		kb, body string
		code     messages.Code
		field    string
	}{
		{"docs", `{"docId":"nobody"}`, messages.CodeDocumentNotFound, "docId"},
		{"docs", `{"docId":""}`, messages.CodeValidation, "docId"},
		{"docs", `{"docId":"a\u0000"}`, messages.CodeValidation, "docId"},
		{"docs", `{`, messages.CodeValidation, "body"},
		{"docs", `{"docId":"a","tenant":"other"}`, messages.CodeValidation, "tenant"},
		{"docs", `{"docId":"a","subspace":"left"}`, messages.CodeValidation, "subspace"},
		{"nowhere", `{"docId":"a"}`, messages.CodeKBNotFound, "knowledgeBaseName"},
		{"docs", "{\"docId\":\"\xff\"}", messages.CodeInvalidEncoding, "body"},
	} {
		id := fmt.Sprintf("delete-%d", i)
		s.publishTo(messages.DeleteSubject(s.tenant, c.kb), id, nil, []byte(c.body))
		e := ev.end(id)
		if e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != c.code || e.Error.Field != c.field || e.Attempt != 1 {
			s.t.Errorf("%s: got %+v (%v), want %s of field %q", c.body, e, e.Error, c.code, c.field)
		}
		_, err := s.request(c.kb, messages.OpDelete, nil, []byte(c.body))
		isError(s.t, c.body, err, c.code, c.field)
	}
	if got := len(s.deadLetters("")); got != 8 {
		s.t.Errorf("dead letters: got %d, want 8", got)
	}
	s.settled()
}
