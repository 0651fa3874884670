// Package testweir is a small stand-in for Weir's services, for tests of the command line: it answers the
// same subjects with the same bodies, keeps everything in memory, and ranks by shared words. Only tests
// import it.
package testweir

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// Tenant is the tenant that the fake serves.
const Tenant = "default"

// Poison in a text makes its document fail with DAMAGED_DOCUMENT. Text without letters or digits is
// EMPTY_DOCUMENT.
const Poison = "poison"

// Fake is the stand-in. Safe for concurrent use.
type Fake struct {
	nc *nats.Conn
	js jetstream.JetStream

	mu      sync.Mutex
	kbs     map[string]*kb
	dead    []messages.DeadLetterDetail
	jobs    []messages.JobInfo
	mute    bool // no events
	submits int
}

type kb struct {
	info messages.KBInfo
	docs map[string]*doc // by subspace/id
}

type doc struct {
	info messages.DocumentInfo
	text string
}

// Start provisions the streams and serves on nc until the test ends.
func Start(t testing.TB, nc *nats.Conn) *Fake {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Provision(t.Context(), js, messages.Streams(), messages.Stages(), bus.Settings{MemoryStorage: true}); err != nil {
		t.Fatal(err)
	}
	f := &Fake{nc: nc, js: js, kbs: map[string]*kb{}}
	f.serve(t)
	sub, err := nc.Subscribe("weir.docs.*.*.*", f.intake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	return f
}

// Mute stops, or starts again, the events of what happens from now on.
func (f *Fake) Mute(mute bool) { f.locked(func() { f.mute = mute }) }

// Submits is how many submits have come in.
func (f *Fake) Submits() (n int) {
	f.locked(func() { n = f.submits })
	return n
}

// CreateKB makes a knowledge base.
func (f *Fake) CreateKB(t testing.TB, in messages.CreateKB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.createKB(in); err != nil {
		t.Fatal(err)
	}
}

// Document returns the text of a document, and whether there is one.
func (f *Fake) Document(kbName, subspace, id string) (info messages.DocumentInfo, text string, ok bool) {
	f.locked(func() {
		if k := f.kbs[kbName]; k != nil {
			if d := k.docs[subspace+"/"+id]; d != nil {
				info, text, ok = d.info, d.text, true
			}
		}
	})
	return info, text, ok
}

func (f *Fake) locked(work func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	work()
}

// intake takes what is published to the docs stream, which this plain subscription sees too.
func (f *Fake) intake(m *nats.Msg) {
	tenant, kbName, err := messages.ParseScope(m.Subject)
	if err != nil {
		return
	}
	id := m.Header.Get(messages.HeaderMsgID)
	if strings.HasPrefix(m.Subject, messages.SubjectDelete) {
		return // deletes are tested through the request
	}
	e := messages.Event{Tenant: tenant, KB: kbName, SubmitID: id, At: time.Now()}
	s, err := messages.DecodeSubmit(m.Header.Get, m.Data)
	if err == nil {
		e.DocID, e.Subspace = s.DocID, s.Subspace
		var text string
		if text, err = f.contentOf(s); err == nil {
			f.tell(e, messages.StatusPending)
			err = f.accept(kbName, s, text, &e)
		}
	}
	f.locked(func() { f.submits++ })
	defer f.acknowledge()
	if err != nil {
		e.Error, _ = messages.AsError(err)
		f.bury(kbName, e)
		f.tell(e, messages.StatusFailed)
		return
	}
	f.tell(e, messages.StatusIndexing)
	f.tell(e, messages.StatusReady)
}

// acknowledge empties the docs stream, as consumers would.
func (f *Fake) acknowledge() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if stream, err := f.js.Stream(ctx, messages.StreamDocs); err == nil {
		_ = stream.Purge(ctx)
	}
}

func (f *Fake) contentOf(s *messages.Submit) (string, error) {
	switch {
	case s.Text != nil:
		return *s.Text, nil
	case s.Upload == nil:
		return string(s.Data), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	store, err := f.js.ObjectStore(ctx, messages.UploadBucket(Tenant))
	if err != nil {
		return "", messages.Errorf(messages.CodeNotFound, "%v", err)
	}
	data, err := store.GetBytes(ctx, s.Upload.Object)
	if err != nil || int64(len(data)) != s.Upload.Size {
		return "", messages.Errorf(messages.CodeNotFound, "object %s: %v, %d bytes", s.Upload.Object, err, len(data))
	}
	return string(data), store.Delete(ctx, s.Upload.Object)
}

func (f *Fake) accept(kbName string, s *messages.Submit, text string, e *messages.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kbs[kbName]
	if k == nil {
		return messages.Errorf(messages.CodeKBNotFound, "there is no knowledge base %s", kbName)
	}
	if strings.Contains(text, Poison) {
		return &messages.Error{Code: messages.CodeDamagedDocument, Message: "is poisoned", Stage: messages.StageParse}
	}
	if len(words(s.Title+" "+text)) == 0 {
		return &messages.Error{Code: messages.CodeEmptyDocument, Message: "no letter or digit in title and text", Stage: messages.StageParse}
	}
	key := s.Subspace + "/" + s.DocID
	version := int64(1)
	if old := k.docs[key]; old != nil {
		if e.Unchanged = old.text == text; e.Unchanged {
			e.Version, e.Chunks = old.info.Version, 1
			return nil
		}
		version = old.info.Version + 1
	}
	e.Version, e.Chunks = version, 1
	k.docs[key] = &doc{text: text, info: messages.DocumentInfo{
		DocID: s.DocID, Subspace: s.Subspace, Title: s.Title, ContentType: s.ContentType, SizeBytes: int64(len(text)),
		Metadata: s.Metadata, Status: messages.StatusReady, Version: version, LiveVersion: version, Chunks: 1, Embedded: 1,
		SubmittedAt: time.Now(), UpdatedAt: time.Now(),
	}}
	return nil
}

func (f *Fake) bury(kbName string, e messages.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = append(f.dead, messages.DeadLetterDetail{
		DeadLetter: messages.DeadLetter{
			ID: int64(len(f.dead) + 1), KB: kbName, DocID: e.DocID, Stage: messages.StageParse, Error: *e.Error, Attempts: 1,
			Subject: messages.SubmitSubject(Tenant, kbName), State: "open", At: time.Now(),
		},
		Headers: map[string]string{messages.HeaderMsgID: e.SubmitID},
	})
}

func (f *Fake) tell(e messages.Event, status messages.DocumentStatus) {
	mute := false
	f.locked(func() { mute = f.mute })
	if mute {
		return
	}
	e.Status = status
	if !status.Terminal() {
		e.Chunks, e.Unchanged = 0, false
	}
	data, _ := json.Marshal(e) // cannot fail
	docID := e.DocID
	if docID == "" {
		docID = messages.NoDocument
	}
	_, _ = f.js.PublishAsync(messages.EventSubject(e.Tenant, e.KB, docID, status), data)
}

// words are the lower-case words of a text.
func words(text string) []string {
	w := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r < '0' || r > '9' && r < 'a' || r > 'z' && r < 0x80
	})
	slices.Sort(w)
	return slices.Compact(w)
}
