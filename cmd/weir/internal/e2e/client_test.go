package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// as returns the system as a test of its own sees it: with a tenant of that name.
func (s *system) as(t testing.TB, name string) *system {
	c := *s
	c.t, c.tenant, c.sent = t, name, new([]string)
	return &c
}

// tenantName makes a name of a tenant from that of a test.
func tenantName(t testing.TB) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(path.Base(t.Name())))
}

// request makes a submit or delete over the request door.
func (s *system) request(kb, op string, header bus.Header, in any) (messages.SubmitReply, error) {
	var out messages.SubmitReply
	err := s.client().Call(s.t.Context(), messages.RPCSubject(s.tenant, kb, op), header, in, &out)
	return out, err
}

// put publishes a document and waits until it is Ready.
func (s *system) put(kb string, submit messages.Submit) messages.Event {
	s.t.Helper()
	ev := s.watch(kb)
	id := fmt.Sprintf("put-%d", len(*s.sent))
	s.publish(kb, id, submit)
	return ev.ready(id)
}

func (s *system) document(kb, id string) messages.DocumentInfo {
	s.t.Helper()
	d, err := call[messages.DocumentInfo](s, kb, messages.OpDocGet, messages.DocumentRef{DocID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *system) chunks(kb, id string) []messages.ChunkInfo {
	s.t.Helper()
	list, err := call[messages.ChunkList](s, kb, messages.OpDocChunks, messages.ListChunks{DocID: id, Page: messages.Page{MaxResults: 500}})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Chunks
}

// awaitStatus waits until a document has a status.
func (s *system) awaitStatus(kb, id string, want messages.DocumentStatus) messages.DocumentInfo {
	s.t.Helper()
	var d messages.DocumentInfo
	testkit.Eventually(s.t, func() error {
		d = s.document(kb, id)
		if d.Status != want {
			return fmt.Errorf("%s is %s (%v), want %s", id, d.Status, d.Error, want)
		}
		return nil
	})
	return d
}

// The ways to retrieve.
var (
	dense    = []messages.SearchType{messages.DenseVector}
	fullText = []messages.SearchType{messages.FullText}
	hybrid   = []messages.SearchType{messages.DenseVector, messages.FullText}
)

// ask retrieves up to 100 chunks.
func (s *system) ask(kb, text string, mode []messages.SearchType, subspace ...string) []messages.RetrievedChunk {
	s.t.Helper()
	n := 100
	out, err := call[messages.RetrieveReply](s, kb, messages.OpRetrieve, messages.RetrieveRequest{
		Subspace: subspace, Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: text},
		Configuration: &messages.RetrievalConfiguration{
			SearchType: mode, Dense: &messages.DenseConfig{NumberOfResults: &n}, FullText: &messages.FullTextConfig{NumberOfResults: &n},
			Reranking: &messages.RerankingConfig{NumberOfResults: &n},
		},
	})
	if err != nil {
		s.t.Fatalf("retrieve %q from %s: %v", text, kb, err)
	}
	return out.Results
}

// docsOf are the documents of results, each once, in order.
func docsOf(results []messages.RetrievedChunk) string {
	var ids []string
	seen := map[string]bool{}
	for _, r := range results {
		if !seen[r.DocID] {
			seen[r.DocID] = true
			ids = append(ids, r.DocID)
		}
	}
	return strings.Join(ids, " ")
}

func (s *system) deadLetters(kb string) []messages.DeadLetter {
	s.t.Helper()
	list, err := call[messages.DeadLetterList](s, messages.TenantScope, messages.OpDLQList, messages.ListDeadLetters{KnowledgeBaseName: kb, Page: messages.Page{MaxResults: 500}})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.DeadLetters
}

// isError checks code and field of an error of a request.
func isError(t testing.TB, what string, err error, code messages.Code, field string) {
	t.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field || e.Message == "" {
		t.Errorf("%s: got %v, want %s of field %q", what, err, code, field)
	}
}

// decodeEnvelope reads a reply.
func decodeEnvelope(t testing.TB, data []byte) messages.Envelope {
	t.Helper()
	var env messages.Envelope
	if err := json.Unmarshal(data, &env); err != nil {
		t.Fatal(err)
	}
	return env
}

// awaitCount waits until a count has a value.
func (s *system) awaitCount(want int, sql string, args ...any) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		if got := s.count(sql, args...); got != want {
			return fmt.Errorf("%s: got %d, want %d", sql, got, want)
		}
		return nil
	})
}

// awaitExists waits until a document is there at all.
func (s *system) awaitExists(kb, id string) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		_, err := call[messages.DocumentInfo](s, kb, messages.OpDocGet, messages.DocumentRef{DocID: id})
		return err
	})
}

// awaitHeld waits until a text with a held word has come to the embedding server.
func (s *system) awaitHeld(word string) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		if s.fake.waitingFor(word) == 0 {
			return fmt.Errorf("no text with %s has come to the embedding server", word)
		}
		return nil
	})
}
