package indexer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/indexer/internal/admin"
)

// office is the requests over the lab's database and a bus, with a stand-in for the embedder's answer.
type office struct {
	*lab
	js     jetstream.JetStream
	admin  *admin.Admin
	sent   publisher
	probed []messages.Space
	probe  error
}

func newOffice(t *testing.T) *office {
	t.Helper()
	l := newLab(t)
	_, connect := testkit.NATS(t)
	js := testkit.JetStream(t, connect())
	o := &office{lab: l, js: js}
	probe := func(_ context.Context, s messages.Space) error {
		o.probed = append(o.probed, s)
		return o.probe
	}
	o.admin = admin.New(l.store, js, &o.sent, probe, messages.Space{Model: "default-model", Dims: 8, Metric: "cosine", Normalized: true},
		messages.RerankProviders{{Name: "local", Models: []string{"small", "large"}}}, func() {})
	return o
}

type request = func(context.Context, bus.Request) (any, error)

// ask makes a request with a JSON body, or a raw one given as a string.
func (o *office) ask(handle request, scope string, body any) (any, error) {
	o.t.Helper()
	data, raw := body.(string)
	r := bus.Request{Tenant: tenant, Scope: scope, Body: []byte(data)}
	if !raw {
		r.Body = marshal(o.t, body)
	}
	return handle(o.t.Context(), r)
}

func TestCreateKBResolvesEverything(t *testing.T) {
	o := newOffice(t)
	got, err := o.ask(o.admin.CreateKB, messages.TenantScope, `{"knowledgeBaseName":"manuals","tags":{"a":"b"},"metadata":[{"name":"year","type":"long"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	info, ok := got.(messages.KBInfo)
	if !ok || info.IndexType != messages.IndexTypeHybrid || info.Analyzer != "lex1" || info.Embedding == nil || info.Embedding.Model != "default-model" ||
		info.Chunking.Strategy != messages.ChunkTokens || info.Chunking.Size != messages.DefaultChunkSize || *info.Chunking.Overlap != messages.DefaultChunkOverlap || info.Tags["a"] != "b" || len(info.Metadata) != 1 {
		t.Errorf("got %+v", got)
	}
	if len(o.probed) != 1 || o.probed[0] != *info.Embedding {
		t.Errorf("probed %v, want the space once", o.probed)
	}
	bucket, err := o.js.ObjectStore(t.Context(), messages.UploadBucket(tenant))
	if err != nil {
		t.Fatalf("upload bucket: %v", err)
	}
	if status, err := bucket.Status(t.Context()); err != nil || status.TTL() != messages.UploadTTL {
		t.Errorf("upload bucket: got %+v (%v), want uploads kept for %s", status, err, messages.UploadTTL)
	}
	_, err = o.ask(o.admin.CreateKB, messages.TenantScope, `{"knowledgeBaseName":"manuals"}`)
	wantError(t, "the same name again", err, messages.CodeAlreadyExists, "knowledgeBaseName")
	if _, err := o.ask(o.admin.CreateKB, messages.TenantScope, `{"knowledgeBaseName":"words","indexType":"bm25"}`); err != nil {
		t.Fatal(err)
	}
	if kb, err := o.store.LoadKB(t.Context(), tenant, "words"); err != nil || kb.Generation.Space != nil || len(o.probed) != 2 {
		t.Errorf("a bm25 knowledge base: got %+v (%v) after %d probes, want no vectors and no probe for it", kb.Generation, err, len(o.probed))
	}
}

func TestCreateKBRefusesWhatItCannotKeep(t *testing.T) {
	o := newOffice(t)
	for _, c := range []struct {
		body  string
		code  messages.Code
		field string
	}{
		{`{"knowledgeBaseName":"x"`, messages.CodeValidation, "body"},
		{`{"name":"x"}`, messages.CodeValidation, "name"},
		{``, messages.CodeValidation, "knowledgeBaseName"},
		{`{"knowledgeBaseName":"Big"}`, messages.CodeValidation, "knowledgeBaseName"},
		{`{"knowledgeBaseName":"_"}`, messages.CodeValidation, "knowledgeBaseName"},
		{`{"knowledgeBaseName":"x","description":"` + strings.Repeat("d", 5000) + `"}`, messages.CodeValidation, "description"},
		{`{"knowledgeBaseName":"x","tags":{"k":"` + strings.Repeat("d", 5000) + `"}}`, messages.CodeValidation, "tags"},
		{`{"knowledgeBaseName":"x","indexType":"graph"}`, messages.CodeIndexTypeNotSupported, "indexType"},
		{`{"knowledgeBaseName":"x","indexType":"bm25","embeddingConfiguration":{}}`, messages.CodeValidation, "embeddingConfiguration"},
		{`{"knowledgeBaseName":"x","metadata":[{"name":"a.b","type":"long"}]}`, messages.CodeValidation, "metadata[0].name"},
		{`{"knowledgeBaseName":"x","metadata":[{"name":"a","type":"int"}]}`, messages.CodeValidation, "metadata[0].type"},
		{`{"knowledgeBaseName":"x","analyzer":"lex9"}`, messages.CodeValidation, "analyzer"},
		{`{"knowledgeBaseName":"x","chunkingConfiguration":{"size":5}}`, messages.CodeValidation, "chunkingConfiguration.size"},
		{`{"knowledgeBaseName":"x","chunkingConfiguration":{"overlap":300}}`, messages.CodeValidation, "chunkingConfiguration.overlap"},
		{`{"knowledgeBaseName":"x","chunkingConfiguration":{"strategy":"lines"}}`, messages.CodeValidation, "chunkingConfiguration.strategy"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"model":"other"}}`, messages.CodeValidation, "embeddingConfiguration.dims"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"metric":"hamming"}}`, messages.CodeValidation, "embeddingConfiguration"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"dims":9000}}`, messages.CodeValidation, "embeddingConfiguration"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"queryPrefix":"` + strings.Repeat("p", 1001) + `"}}`, messages.CodeValidation, "embeddingConfiguration"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"passagePrefix":"a\u0000b"}}`, messages.CodeValidation, "embeddingConfiguration.passagePrefix"},
		{`{"knowledgeBaseName":"x","embeddingConfiguration":{"model":"a\u0000b","dims":4}}`, messages.CodeValidation, "embeddingConfiguration.model"},
	} {
		_, err := o.ask(o.admin.CreateKB, messages.TenantScope, c.body)
		wantError(t, c.body[:min(len(c.body), 120)], err, c.code, c.field)
	}
	refused := messages.Errorf(messages.CodeDimensionMismatch, "the model has 12 dimensions")
	o.probe = refused
	if _, err := o.ask(o.admin.CreateKB, messages.TenantScope, `{"knowledgeBaseName":"x"}`); !errors.Is(err, refused) {
		t.Errorf("a space the server does not have: got %v, want %v", err, refused)
	}
	if n := o.count("SELECT count(*) FROM knowledge_bases"); n != 1 {
		t.Errorf("got %d knowledge bases, want the lab's own alone", n)
	}
}

func TestCreateKBResolvesTheSpace(t *testing.T) {
	o := newOffice(t)
	base := messages.Space{Model: "default-model", Dims: 8, Metric: "cosine", Normalized: true}
	with := func(change func(*messages.Space)) messages.Space {
		s := base
		change(&s)
		return s
	}
	for i, c := range []struct {
		embedding string
		want      messages.Space
	}{
		{`{}`, base},
		{`{"dims":4}`, with(func(s *messages.Space) { s.Dims = 4 })},
		{`{"model":"default-model"}`, base},
		{`{"metric":"ip","normalized":false}`, with(func(s *messages.Space) { s.Metric, s.Normalized = "ip", false })},
		{`{"queryPrefix":"q: ","passagePrefix":"p: "}`, with(func(s *messages.Space) { s.QueryPrefix, s.PassagePrefix = "q: ", "p: " })},
		{`{"model":"intfloat/e5-base","dims":768}`, messages.Space{Model: "intfloat/e5-base", Dims: 768, Metric: "cosine", Normalized: true, QueryPrefix: "query: ", PassagePrefix: "passage: "}},
		{`{"model":"intfloat/e5-base","dims":768,"queryPrefix":""}`, messages.Space{Model: "intfloat/e5-base", Dims: 768, Metric: "cosine", Normalized: true, PassagePrefix: "passage: "}},
	} {
		got, err := o.ask(o.admin.CreateKB, messages.TenantScope, fmt.Sprintf(`{"knowledgeBaseName":"kb%d","embeddingConfiguration":%s}`, i, c.embedding))
		info, ok := got.(messages.KBInfo)
		if err != nil || !ok || *info.Embedding != c.want {
			t.Errorf("%s: got %+v (%v), want %+v", c.embedding, got, err, c.want)
		}
	}
}

func TestUpdateKB(t *testing.T) {
	o := newOffice(t)
	update := func(body string) (messages.KBInfo, error) {
		got, err := o.ask(o.admin.UpdateKB, "docs", body)
		info, _ := got.(messages.KBInfo)
		return info, err
	}
	info, err := update(`{"description":"Manuals","tags":{"team":"a"},"metadata":[{"name":"year","type":"long"}],"retrievalConfiguration":{"searchType":["FULL_TEXT"]}}`)
	if err != nil || info.Description != "Manuals" || info.Tags["team"] != "a" || len(info.Metadata) != 1 || len(info.Retrieval) == 0 {
		t.Fatalf("got %+v (%v)", info, err)
	}
	info, err = update(`{"metadata":[{"name":"of","type":"string"}]}`)
	if err != nil || len(info.Metadata) != 2 || info.Description != "Manuals" || len(info.Retrieval) == 0 {
		t.Errorf("a field more: got %+v (%v), want the rest as it was", info, err)
	}
	info, err = update(`{"description":null,"tags":null,"retrievalConfiguration":null}`)
	if err != nil || info.Description != "" || len(info.Tags) != 0 || len(info.Retrieval) != 0 || len(info.Metadata) != 2 {
		t.Errorf("null clears: got %+v (%v)", info, err)
	}
	for _, c := range []struct {
		body  string
		field string
	}{
		{`{}`, "body"},
		{``, "body"},
		{`{"description":7}`, "description"},
		{`{"description":"a\u0000b"}`, "description"},
		{`{"tags":["a"]}`, "tags"},
		{`{"tags":{"a":1}}`, "tags"},
		{`{"tags":{"a":"b\u0000"}}`, "tags.a"},
		{`{"metadata":[{"name":"year","type":"long"}]}`, "metadata[2].name"},
		{`{"metadata":[{"name":"year","type":"string"}]}`, "metadata[2].name"},
		{`{"knowledgeBaseName":"other","description":"x"}`, "knowledgeBaseName"},
		{`{"indexType":"bm25"}`, "indexType"},
		{`{"retrievalConfiguration":{"searchType":["TELEPATHY"]}}`, "retrievalConfiguration.searchType[0]"},
	} {
		if _, err := update(c.body); err == nil {
			t.Errorf("%s: got no error", c.body)
		} else if e, ok := messages.AsError(err); !ok || e.Field != c.field {
			t.Errorf("%s: got %v, want an error of %q", c.body, err, c.field)
		}
	}
	for _, body := range []string{`{"description":"x"}`, `{"retrievalConfiguration":{}}`} {
		_, err = o.ask(o.admin.UpdateKB, "nowhere", body)
		wantError(t, "unknown", err, messages.CodeKBNotFound, "knowledgeBaseName")
	}
	_, err = o.admin.UpdateKB(t.Context(), bus.Request{Tenant: "other", Scope: "docs", Body: []byte(`{"description":"x"}`)})
	wantError(t, "another tenant's", err, messages.CodeKBNotFound, "knowledgeBaseName")
}

func TestDeleteKB(t *testing.T) {
	o := newOffice(t)
	_, err := o.ask(o.admin.DeleteKB, "docs", `{"knowledgeBaseName":"other"}`)
	wantError(t, "another in the body", err, messages.CodeValidation, "knowledgeBaseName")
	_, err = o.admin.DeleteKB(t.Context(), bus.Request{Tenant: "other", Scope: "docs"})
	wantError(t, "another tenant's", err, messages.CodeKBNotFound, "knowledgeBaseName")
	if got, err := o.ask(o.admin.DeleteKB, "docs", ``); err != nil || got != (messages.KBRef{KnowledgeBaseName: "docs"}) {
		t.Fatalf("got %v (%v)", got, err)
	}
	_, err = o.ask(o.admin.DeleteKB, "docs", ``)
	wantError(t, "again", err, messages.CodeKBNotFound, "knowledgeBaseName")
	if _, err := o.ask(o.admin.CreateKB, messages.TenantScope, `{"knowledgeBaseName":"docs"}`); err != nil {
		t.Errorf("its name is free: %v", err)
	}
}

// letters records n dead letters of submits and returns their ids, oldest first.
func (o *office) letters(n int) []int64 {
	o.t.Helper()
	for i := range n {
		o.record(deadSubmit(uint64(1000+i), `{"docId":"victim","text":7}`, nil)) //nolint:gosec // small
	}
	return o.letterIDs()
}

func (o *office) letterIDs() []int64 {
	o.t.Helper()
	list, err := o.store.ListDeadLetters(o.t.Context(), tenant, "", "", "open", 0, 1000)
	if err != nil {
		o.t.Fatal(err)
	}
	var ids []int64
	for _, d := range slices.Backward(list) {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestDeadLettersAreListedInPages(t *testing.T) {
	o := newOffice(t)
	want := o.letters(5)
	slices.Reverse(want)
	var got []int64
	token := ""
	for range 4 {
		reply, err := o.ask(o.admin.ListDead, messages.TenantScope, map[string]any{"maxResults": 2, "nextToken": token})
		page, ok := reply.(messages.DeadLetterList)
		if err != nil || !ok || len(page.DeadLetters) > 2 {
			t.Fatalf("got %+v (%v)", reply, err)
		}
		for _, d := range page.DeadLetters {
			got = append(got, d.ID)
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, c := range []struct{ body, field string }{
		{`{"maxResults":501}`, "maxResults"},
		{`{"maxResults":-1}`, "maxResults"},
		{`{"nextToken":"x"}`, "nextToken"},
		{`{"nextToken":"-3"}`, "nextToken"},
		{`{"state":"lost"}`, "state"},
		{`{"what":1}`, "what"},
	} {
		_, err := o.ask(o.admin.ListDead, messages.TenantScope, c.body)
		wantError(t, c.body, err, messages.CodeValidation, c.field)
	}
	for body, want := range map[string]int{
		`{"knowledgeBaseName":"docs","stage":"intake"}`: 5, `{"knowledgeBaseName":"other"}`: 0, `{"stage":"parse"}`: 0, `{"state":"replayed"}`: 0, ``: 5,
	} {
		reply, err := o.ask(o.admin.ListDead, messages.TenantScope, body)
		page, ok := reply.(messages.DeadLetterList)
		if err != nil || !ok || len(page.DeadLetters) != want || page.DeadLetters == nil {
			t.Errorf("%s: got %+v (%v), want %d in a list", body, reply, err, want)
		}
	}
	reply, err := o.admin.ListDead(t.Context(), bus.Request{Tenant: "other"})
	if page, ok := reply.(messages.DeadLetterList); err != nil || !ok || len(page.DeadLetters) != 0 {
		t.Errorf("another tenant: got %+v (%v), want none", reply, err)
	}
}

func TestADeadLetterIsShownWholeToItsTenantOnly(t *testing.T) {
	o := newOffice(t)
	id := o.letters(1)[0]
	body := fmt.Sprintf(`{"id":%d}`, id)
	got, err := o.ask(o.admin.GetDead, messages.TenantScope, body)
	d, ok := got.(messages.DeadLetterDetail)
	if err != nil || !ok || d.ID != id || string(d.Body) != `{"docId":"victim","text":7}` || d.DocID != "victim" || d.State != "open" ||
		d.Error.Code != messages.CodeValidation || d.Error.Field != "text" || d.Headers[messages.HeaderDeadStage] != messages.StageIntake {
		t.Errorf("got %+v (%v)", got, err)
	}
	for name, handle := range map[string]request{"get": o.admin.GetDead, "replay": o.admin.ReplayDead, "discard": o.admin.DiscardDead} {
		_, err := handle(t.Context(), bus.Request{Tenant: "other", Body: []byte(body)})
		wantError(t, name+" by another tenant", err, messages.CodeNotFound, "id")
		_, err = o.ask(handle, messages.TenantScope, `{"id":999999}`)
		wantError(t, name+" of none", err, messages.CodeNotFound, "id")
		_, err = o.ask(handle, messages.TenantScope, ``)
		wantError(t, name+" without an id", err, messages.CodeNotFound, "id")
		_, err = o.ask(handle, messages.TenantScope, `{"id":"x"}`)
		wantError(t, name+" with a bad id", err, messages.CodeValidation, "id")
	}
	if len(o.sent.sent) != 0 {
		t.Errorf("published %v", names(o.sent.sent))
	}
}

func TestDiscardedLettersStayDiscarded(t *testing.T) {
	o := newOffice(t)
	body := fmt.Sprintf(`{"id":%d}`, o.letters(1)[0])
	for range 2 {
		if _, err := o.ask(o.admin.DiscardDead, messages.TenantScope, body); err != nil {
			t.Fatal(err)
		}
	}
	_, err := o.ask(o.admin.ReplayDead, messages.TenantScope, body)
	wantError(t, "replay of a discarded one", err, messages.CodeNotSupported, "")
	if len(o.sent.sent) != 0 {
		t.Errorf("published %v", names(o.sent.sent))
	}
}

func TestReplayPublishesARefusedSubmitAnew(t *testing.T) {
	o := newOffice(t)
	o.record(deadSubmit(1, "raw body", map[string]string{
		messages.HeaderDocID: "a%20b", messages.HeaderTitle: "T%C3%A4", messages.HeaderContentType: "text/plain", "traceparent": "00-1-2-01",
	}))
	del := deadSubmit(2, `{"docId":"gone"}`, nil)
	del.Header[messages.HeaderDeadSubject] = "weir.docs.delete.3.acme.docs"
	o.record(del)
	ids := o.letterIDs()
	for _, id := range ids {
		for range 2 { // as after a lost reply: the same ids again
			if _, err := o.ask(o.admin.ReplayDead, messages.TenantScope, messages.DeadLetterRef{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	sent := o.sent.sent
	if len(sent) != 4 || sent[0].ID != sent[1].ID || sent[2].ID != sent[3].ID || sent[0].ID == sent[2].ID {
		t.Fatalf("published %v, want two messages twice", names(sent))
	}
	m := sent[0]
	if m.Subject != messages.SubmitSubject(tenant, "docs") || string(m.Body) != "raw body" || m.Header[messages.HeaderDocID] != "a%20b" || m.Header[messages.HeaderTitle] != "T%C3%A4" {
		t.Errorf("got %+v", m)
	}
	for key := range m.Header {
		if strings.HasPrefix(key, "dlq-") || key == "traceparent" {
			t.Errorf("header %s went along", key)
		}
	}
	if sent[2].Subject != messages.DeleteSubject(tenant, "docs") {
		t.Errorf("a delete went to %s", sent[2].Subject)
	}
	if n := o.count("SELECT count(*) FROM dead_letters WHERE state = 'replayed'"); n != 2 {
		t.Errorf("replayed letters: got %d, want 2", n)
	}
}

func TestACutLetterCannotBeReplayed(t *testing.T) {
	o := newOffice(t)
	o.record(deadSubmit(1, `{"docId":"big","text":"aaa`, map[string]string{messages.HeaderDeadTruncated: "2000000"}))
	_, err := o.ask(o.admin.ReplayDead, messages.TenantScope, messages.DeadLetterRef{ID: o.letterIDs()[0]})
	wantError(t, "replay", err, messages.CodeNotSupported, "")
	if n := o.count("SELECT count(*) FROM dead_letters WHERE state = 'open'"); n != 1 || len(o.sent.sent) != 0 {
		t.Errorf("got %d open and %v published, want it left open", n, names(o.sent.sent))
	}
}

func TestReplayTakesAFailedVersionUpAgain(t *testing.T) {
	o := newOffice(t)
	ref := o.staged("doc", "one")
	o.record(deadWork(1, messages.StageEmbed, ref))
	if d := o.document("doc"); d.Status != messages.StatusFailed {
		t.Fatalf("got %s, want Failed", d.Status)
	}
	id := o.letterIDs()[0]
	for range 2 {
		if _, err := o.ask(o.admin.ReplayDead, messages.TenantScope, messages.DeadLetterRef{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.sent.sent) != 1 {
		t.Fatalf("published %v, want parse work once", names(o.sent.sent))
	}
	ref.Run = 1
	var got messages.ParseWork
	if err := json.Unmarshal(o.sent.sent[0].Body, &got); err != nil || got.Ref != ref || o.sent.sent[0].ID != ref.MsgID(messages.StageParse, 0) {
		t.Errorf("got %+v (%v), want %+v", got, err, ref)
	}
	if d := o.document("doc"); d.Status != messages.StatusPending || d.Error != nil {
		t.Errorf("got %s with error %v, want Pending without", d.Status, d.Error)
	}
	o.submit("doc", "two")
	o.record(deadWork(2, messages.StageParse, ref))
	_, err := o.ask(o.admin.ReplayDead, messages.TenantScope, messages.DeadLetterRef{ID: o.letterIDs()[0]})
	wantError(t, "replay of an overtaken version", err, messages.CodeNotSupported, "")
}
