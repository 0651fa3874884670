package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// upload puts an object into the tenant's bucket, which is there since its first knowledge base.
func (s *system) upload(name, content string) {
	s.t.Helper()
	if _, err := s.bucket().PutString(s.t.Context(), name, content); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) bucket() jetstream.ObjectStore {
	s.t.Helper()
	bucket, err := s.js.ObjectStore(s.t.Context(), messages.UploadBucket(s.tenant))
	if err != nil {
		s.t.Fatal(err)
	}
	return bucket
}

// objectGone waits until an object is removed.
func (s *system) objectGone(name string) {
	s.t.Helper()
	bucket := s.bucket()
	testkit.Eventually(s.t, func() error {
		if _, err := bucket.GetInfo(s.t.Context(), name); !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("object %s is still there: %w", name, err)
		}
		return nil
	})
}

// uploads are documents larger than a message.
func uploads(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs", IndexType: messages.IndexTypeBM25, Chunking: &messages.Chunking{Size: 4000}})
	ev := s.watch("docs")
	large := strings.Repeat("The pump hums in the cellar and nobody minds it at all.\n\n", 3<<20/57) + "The rareword stands at the end.\n"
	s.upload("big.txt", large)
	submit := messages.Submit{DocID: "big", ContentType: "text/plain", Upload: &messages.Upload{Object: "big.txt", Size: int64(len(large))}}
	s.publish("docs", "m1", submit)
	e := ev.ready("m1")
	if d := s.document("docs", "big"); d.SizeBytes != int64(len(large)) || d.Chunks != e.Chunks || e.Chunks < 100 {
		s.t.Errorf("document: got %+v, want all of %d bytes", d, len(large))
	}
	if found := s.ask("docs", "rareword", fullText); len(found) != 1 || !strings.Contains(found[0].Content, "rareword stands") {
		s.t.Errorf("found %d chunks, want the last", len(found))
	}
	s.objectGone("big.txt")
	s.publish("docs", "m2", submit)
	if e := ev.end("m2"); e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != messages.CodeValidation || e.Error.Field != "upload.object" {
		s.t.Errorf("an object that is gone: got %+v (%v)", e, e.Error)
	}
	if d := s.document("docs", "big"); d.Status != messages.StatusReady || d.Version != 1 {
		s.t.Errorf("after a refused submit: got %+v, want version 1 Ready", d)
	}
	s.settled()
}

// uploadTwice is the same submit delivered again after its object was taken up and removed.
func uploadTwice(s *system) {
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.upload("a.txt", "A text of an upload.")
	submit := messages.Submit{DocID: "a", ContentType: "text/plain", Upload: &messages.Upload{Object: "a.txt", Size: 20}}
	key := bus.Header{messages.HeaderIdempotencyKey: "k1"}
	first, err := s.request("docs", messages.OpSubmit, key, submit)
	if err != nil {
		s.t.Fatal(err)
	}
	s.objectGone("a.txt")
	again, err := s.request("docs", messages.OpSubmit, key, submit)
	if err != nil || again.Version != first.Version || again.SubmitID != first.SubmitID {
		s.t.Errorf("again: got %+v, %v; want the verdict %+v", again, err, first)
	}
	s.awaitStatus("docs", "a", messages.StatusReady)
	if _, err := s.request("docs", messages.OpSubmit, nil, submit); err == nil {
		s.t.Error("another submit of the same object: got no error")
	}
	// The object of another tenant is out of reach.
	other := s.as(s.t, s.tenant+"-b")
	other.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	other.upload("secret.txt", "A secret.")
	_, err = s.request("docs", messages.OpSubmit, nil, messages.Submit{DocID: "b", Upload: &messages.Upload{Object: "secret.txt", Size: 9}})
	isError(s.t, "an object of another tenant", err, messages.CodeValidation, "upload.object")
}

// A document over the limit is refused on every way in, whatever its sender says about its size.
func TestOversizeDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, options{maxBytes: 10_000, quiet: true})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	ev := s.watch("docs")
	large := strings.Repeat("ten bytes\n", 1001)
	s.upload("honest", large)
	s.upload("lying", large)
	for name, c := range map[string]struct {
		header nats.Header
		body   any
	}{
		"text":         {nil, messages.Submit{DocID: "a", Text: &large}},
		"data":         {nil, messages.Submit{DocID: "a", Data: []byte(large)}},
		"raw body":     {raw("Weir-Doc-Id", "a", "Content-Type", "text/plain"), []byte(large)},
		"upload":       {nil, messages.Submit{DocID: "a", Upload: &messages.Upload{Object: "honest", Size: 10_010}}},
		"lying upload": {nil, messages.Submit{DocID: "a", Upload: &messages.Upload{Object: "lying", Size: 5}}},
	} {
		body, isRaw := c.body.([]byte)
		if !isRaw {
			var err error
			if body, err = messages.Encode(c.body); err != nil {
				t.Fatal(err)
			}
		}
		s.publishRaw("docs", name, c.header, body)
		s.publish("docs", "good behind "+name, doc(len(*s.sent)))
		ev.ready("good behind " + name)
		e := ev.end(name)
		if e.Status != messages.StatusFailed || e.Error == nil || e.Error.Code != messages.CodeDocumentTooLarge || e.Error.Field == "" || e.Attempt != 1 {
			t.Errorf("%s: got %+v (%v), want DOCUMENT_TOO_LARGE at attempt 1", name, e, e.Error)
		}
		header := bus.Header{}
		for k, v := range c.header {
			header[k] = v[0]
		}
		if name == "lying upload" || name == "upload" {
			s.upload(map[string]string{"upload": "honest", "lying upload": "lying"}[name], large)
		}
		var refused *messages.Error
		if _, err := s.request("docs", messages.OpSubmit, header, body); !errors.As(err, &refused) || refused.Code != messages.CodeDocumentTooLarge {
			t.Errorf("%s by request: got %v, want DOCUMENT_TOO_LARGE", name, err)
		}
	}
	if got := len(s.deadLetters("docs")); got != 5 {
		t.Errorf("dead letters: got %d, want 5", got)
	}
	if n := s.count("SELECT count(*) FROM documents WHERE doc_id = 'a' AND version > 0"); n != 0 {
		t.Error("a refused document has a version")
	}
	s.settled()
}
