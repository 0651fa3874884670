package retriever_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func TestListingsPageThrough(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.kb("aside", nil)
	for i := range 5 {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%d", i), "one", "two", "three")
	}
	var names []string
	for token := ""; ; {
		var page messages.KBList
		if err := l.call(messages.TenantScope, messages.OpKBList, fmt.Sprintf(`{"maxResults":1,"nextToken":%q}`, token), &page); err != nil {
			t.Fatal(err)
		}
		for _, k := range page.KnowledgeBases {
			names = append(names, k.KnowledgeBaseName)
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if !slices.Equal(names, []string{"aside", "docs"}) {
		t.Errorf("knowledge bases: got %v", names)
	}
	var docs []string
	for token := ""; ; {
		var page messages.DocumentList
		if err := l.call("docs", messages.OpDocList, fmt.Sprintf(`{"status":"Ready","maxResults":2,"nextToken":%q}`, token), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Documents {
			docs = append(docs, d.DocID)
			if string(d.Metadata) != `{"of":"`+d.DocID+`"}` || d.Status != messages.StatusReady || d.Chunks != 3 {
				t.Errorf("document: got %+v %s", d, d.Metadata)
			}
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if !slices.Equal(docs, []string{"d0", "d1", "d2", "d3", "d4"}) {
		t.Errorf("documents: got %v", docs)
	}
	var chunks []string
	for token := ""; ; {
		var page messages.ChunkList
		if err := l.call("docs", messages.OpDocChunks, fmt.Sprintf(`{"docId":"d3","maxResults":2,"nextToken":%q}`, token), &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Chunks {
			chunks = append(chunks, fmt.Sprintf("%d %s %s", c.ChunkID, c.Content, c.Status))
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if !slices.Equal(chunks, []string{"0 one active", "1 two active", "2 three active"}) {
		t.Errorf("chunks: got %v", chunks)
	}
}

func TestGetKnowledgeBaseAndDocument(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.put(kb, messages.DefaultSubspace, "d", "one", "two")
	var info messages.KBInfo
	if err := l.call("docs", messages.OpKBGet, ``, &info); err != nil {
		t.Fatal(err)
	}
	if info.ID != kb.ID || info.Documents == nil || info.Documents.Ready != 1 || info.Documents.Chunks != 2 || info.Embedding.Dims != 8 {
		t.Errorf("knowledge base: got %+v", info)
	}
	if want := messages.DefaultRetrieveLimits(); info.Limits == nil || *info.Limits != want {
		t.Errorf("limits: got %+v, want the server's %+v", info.Limits, want)
	}
	l.kb("tight", func(n *pgstore.NewKB) {
		n.Retrieval = json.RawMessage(`{"limits":"tablestore","filterLimits":{"depth":3}}`)
	})
	want := messages.TablestoreRetrieveLimits()
	want.Filter.Depth = 3
	if err := l.call("tight", messages.OpKBGet, ``, &info); err != nil || *info.Limits != want {
		t.Errorf("limits of a tight knowledge base: got %+v (%v), want %+v", info.Limits, err, want)
	}
	err := l.call("tight", messages.OpRetrieve, `{"retrievalQuery":{"type":"TEXT","text":"one"},"retrievalConfiguration":{"fullTextSearchConfiguration":{"numberOfResults":101}}}`, nil)
	if e, ok := messages.AsError(err); !ok || e.Limit != 100 {
		t.Errorf("too many candidates: got %+v, want the limit 100", e)
	}
	var doc messages.DocumentInfo
	if err := l.call("docs", messages.OpDocGet, `{"docId":"d"}`, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Title != "Title of d" || doc.LiveVersion != 1 || strings.Contains(string(doc.Metadata), "owner") {
		t.Errorf("document: got %+v with %s", doc, doc.Metadata)
	}
	l.kb("rooms", func(n *pgstore.NewKB) { n.Subspaces = true })
	for _, c := range []struct {
		kb, op, body string
		code         messages.Code
		field        string
	}{
		{"docs", messages.OpDocGet, `{}`, messages.CodeValidation, "docId"},
		{"docs", messages.OpDocGet, `{"docId":"none"}`, messages.CodeDocumentNotFound, "docId"},
		{"docs", messages.OpDocGet, `{"docId":"d","subspace":"room"}`, messages.CodeValidation, "subspace"},
		{"rooms", messages.OpDocGet, `{"docId":"d","subspace":"no room"}`, messages.CodeValidation, "subspace"},
		{"docs", messages.OpDocChunks, `{"docId":"none"}`, messages.CodeDocumentNotFound, "docId"},
		{"docs", messages.OpDocChunks, `{"docId":"d","nextToken":"?"}`, messages.CodeCursorInvalid, "nextToken"},
		{"docs", messages.OpDocList, `{"maxResults":501}`, messages.CodeValidation, "maxResults"},
		{"docs", messages.OpDocList, `{"status":"Lost"}`, messages.CodeValidation, "status"},
		{"docs", messages.OpDocList, `{"subspace":["room"]}`, messages.CodeValidation, "subspace"},
		{"docs", messages.OpDocList, `{"nextToken":"W10"}`, messages.CodeCursorInvalid, "nextToken"},
		{"none", messages.OpKBGet, ``, messages.CodeKBNotFound, "knowledgeBaseName"},
		{"docs", messages.OpKBGet, `{"knowledgeBaseName":"rooms"}`, messages.CodeValidation, "knowledgeBaseName"},
		{"No", messages.OpKBGet, ``, messages.CodeValidation, "subject"},
		{messages.TenantScope, messages.OpKBList, `{"after":"x"}`, messages.CodeValidation, "after"},
	} {
		refused(t, c.kb+" "+c.op+" "+c.body, l.call(c.kb, c.op, c.body, nil), c.code, c.field)
	}
}

// A page of large chunks ends where the reply is full, and the next one goes on there.
func TestPagesFitAReply(t *testing.T) {
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	chunks := make([]string, 40)
	for i := range chunks {
		chunks[i] = strings.Repeat("wide ", 10_000)
	}
	l.put(kb, messages.DefaultSubspace, "d", chunks...)
	seen := 0
	for token, pages := "", 0; ; pages++ {
		var page messages.ChunkList
		if err := l.call("docs", messages.OpDocChunks, fmt.Sprintf(`{"docId":"d","nextToken":%q}`, token), &page); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Chunks {
			if c.ChunkID != seen {
				t.Fatalf("got chunk %d, want %d", c.ChunkID, seen)
			}
			seen++
		}
		if token = page.NextToken; token == "" {
			if pages == 0 {
				t.Error("everything came in one page")
			}
			break
		}
	}
	if seen != len(chunks) {
		t.Errorf("got %d chunks, want %d", seen, len(chunks))
	}
}

func TestEndpointsAreDiscoverable(t *testing.T) {
	l := newLab(t, setup{})
	subject, err := micro.ControlSubject(micro.InfoVerb, "weir-retriever", "")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := l.nc.Request(subject, nil, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range info.Endpoints {
		names = append(names, e.Name+" "+e.Subject)
		for _, key := range []string{messages.MetadataRequest, messages.MetadataReply} {
			var s struct {
				Type       string
				Properties map[string]any
			}
			if err := json.Unmarshal([]byte(e.Metadata[key]), &s); err != nil || s.Type != "object" || len(s.Properties) == 0 {
				t.Errorf("%s of %s: got %s (%v)", key, e.Name, e.Metadata[key], err)
			}
		}
		if e.QueueGroup != "weir-retriever" {
			t.Errorf("queue group of %s: got %q", e.Name, e.QueueGroup)
		}
	}
	want := []string{
		"retrieve weir.rpc.*.*.retrieve", "batch_retrieve weir.rpc.*.*.batch_retrieve", "search weir.rpc.*.*.search", "kb_get weir.rpc.*.*.kb_get", "kb_list weir.rpc.*._.kb_list",
		"documents_get weir.rpc.*.*.documents_get", "documents_list weir.rpc.*.*.documents_list", "documents_chunks weir.rpc.*.*.documents_chunks",
	}
	if !slices.Equal(names, want) {
		t.Errorf("endpoints: got %v, want %v", names, want)
	}
}
