package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// intake hears what is published to the documents, which a plain subscription does too.
func (b *bench) intake(handle func(*nats.Msg)) {
	b.t.Helper()
	sub, err := b.nc.Subscribe("weir.docs.*.*.*", handle)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := b.nc.Flush(); err != nil {
		b.t.Fatal(err)
	}
}

// tell publishes an event of a submit.
func (b *bench) tell(e messages.Event) {
	body, err := messages.Encode(e)
	if err == nil {
		err = b.nc.Publish(messages.EventSubject(e.Tenant, e.KB, e.DocID, e.Status), body)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// answering tells, of every message, Pending and then an end.
func (b *bench) answering(status messages.DocumentStatus, failure *messages.Error) {
	b.intake(func(m *nats.Msg) {
		_, kb, err := messages.ParseScope(m.Subject)
		if err != nil {
			b.t.Error(err)
			return
		}
		e := messages.Event{Tenant: "t", KB: kb, DocID: "d", Version: 3, SubmitID: m.Header.Get(messages.HeaderMsgID), At: time.Now()}
		e.Status = messages.StatusPending
		b.tell(e)
		e.Status, e.Error = status, failure
		b.tell(e)
	})
}

func (b *bench) bucket() jetstream.ObjectStore {
	b.t.Helper()
	store, err := b.js.CreateOrUpdateObjectStore(b.t.Context(), jetstream.ObjectStoreConfig{
		Bucket: messages.UploadBucket("t"), Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return store
}

func (b *bench) objects() int {
	b.t.Helper()
	list, err := b.bucket().List(b.t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		b.t.Fatal(err)
	}
	return len(list)
}

// stored is the last message of the stream of documents.
func (b *bench) stored(seq uint64) *jetstream.RawStreamMsg {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), messages.StreamDocs)
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := stream.GetMsg(b.t.Context(), seq)
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// refusals serves these dead letters of intake.
func (b *bench) refusals(all map[int64]messages.DeadLetterDetail) {
	b.t.Helper()
	serve(b.t, b.nc, messages.OpDLQList, func(context.Context, bus.Request) (any, error) {
		var list messages.DeadLetterList
		for _, id := range slices.Backward(slices.Sorted(maps.Keys(all))) {
			d := all[id].DeadLetter
			d.ID = id
			list.DeadLetters = append(list.DeadLetters, d)
		}
		return list, nil
	})
	serve(b.t, b.nc, messages.OpDLQGet, func(_ context.Context, r bus.Request) (any, error) {
		var ref messages.DeadLetterRef
		err := json.Unmarshal(r.Body, &ref)
		return all[ref.ID], err
	})
}

func doc(id, content string) Document {
	return Document{Submit: messages.Submit{DocID: id, Text: &content}}
}

func TestPublishStoresASubmit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	ctx, k := within(t, testkit.Patience), b.c.KB("kb1")
	raw := Document{
		Submit:  messages.Submit{DocID: "a b/ü", Title: "50 % ü", Subspace: "s1", ContentType: "text/markdown", Metadata: []byte(`{"year":2024}`)},
		Content: strings.NewReader("# Überschrift"),
	}
	for _, c := range []struct {
		d        Document
		wantText string
	}{{doc("plain", "alpha"), "alpha"}, {raw, "# Überschrift"}, {Document{Submit: messages.Submit{OSSKey: "x/y", Data: []byte("beta")}}, "beta"}} {
		s, err := k.Publish(ctx, c.d, WithMsgID("id-"+c.wantText[:4]))
		if err != nil || s.Sequence == 0 || s.Duplicate || s.DocID == "" || s.ID != "id-"+c.wantText[:4] {
			t.Fatalf("%s: got %+v, %v", c.wantText, s, err)
		}
		m := b.stored(s.Sequence)
		got, err := messages.DecodeSubmit(m.Header.Get, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		content := string(got.Data)
		if got.Text != nil {
			content = *got.Text
		}
		if content != c.wantText || got.DocID != s.DocID || got.Title != c.d.Submit.Title || string(got.Metadata) != string(c.d.Submit.Metadata) {
			t.Errorf("got %+v with %q, want what was published", got, content)
		}
	}
	s, err := k.Publish(ctx, doc("plain", "again"), WithMsgID("id-alph"))
	if err != nil || !s.Duplicate || s.Sequence != 1 {
		t.Errorf("the same id again: got %+v, %v, want a duplicate of the first", s, err)
	}
}

func TestBadDocumentsAreRefusedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{MaxDocumentBytes: 1000})
	b.bucket()
	ctx, k := within(t, testkit.Patience), b.c.KB("kb1")
	for _, c := range []struct {
		what  string
		d     Document
		code  messages.Code
		field string
	}{
		{"no id", doc("", "x"), messages.CodeValidation, "docId"},
		{"no content", Document{Submit: messages.Submit{DocID: "d"}}, messages.CodeValidation, "text"},
		{"two contents", Document{Submit: messages.Submit{DocID: "d", Text: text("x")}, Content: strings.NewReader("y")}, messages.CodeValidation, "text"},
		{"bad subspace", Document{Submit: messages.Submit{DocID: "d", Subspace: "a.b", Text: text("x")}}, messages.CodeValidation, "subspace"},
		{"too large", Document{Submit: messages.Submit{DocID: "d"}, Content: strings.NewReader(strings.Repeat("x", 1001))}, messages.CodeDocumentTooLarge, "data"},
		{"far too large", Document{Submit: messages.Submit{DocID: "d"}, Content: bytes.NewReader(make([]byte, 2<<20))}, messages.CodeDocumentTooLarge, "data"},
	} {
		_, err := k.Publish(ctx, c.d)
		wantCode(t, c.what, err, c.code, c.field)
	}
	broken := errors.New("disk is broken")
	if _, err := k.Publish(ctx, Document{Submit: messages.Submit{DocID: "d"}, Content: io.MultiReader(strings.NewReader("a"), failing{broken})}); !errors.Is(err, broken) {
		t.Errorf("broken content: got %v", err)
	}
	if n := b.objects(); n != 0 {
		t.Errorf("%d objects are left", n)
	}
	if _, err := k.PublishDelete(ctx, messages.Delete{}); err == nil {
		t.Error("a delete of nothing passes")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestLargeContentsGoThroughTheObjectStore(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	store, large := b.bucket(), strings.Repeat("alpha beta ", 120_000) // over the server's 1 MiB
	for name, d := range map[string]Document{
		"read":  {Submit: messages.Submit{DocID: "d", Title: "T", ContentType: "text/plain"}, Content: strings.NewReader(large)},
		"text":  {Submit: messages.Submit{DocID: "d", Title: "T", Text: &large}},
		"bytes": {Submit: messages.Submit{DocID: "d", Title: "T", Data: []byte(large)}},
	} {
		s, err := b.c.KB("kb1").Publish(within(t, testkit.Patience), d)
		if err != nil {
			t.Fatal(err)
		}
		m := b.stored(s.Sequence)
		got, err := messages.DecodeSubmit(m.Header.Get, m.Data)
		if err != nil || got.Upload == nil || got.Title != "T" {
			t.Fatalf("%s: got %+v, %v, want an upload", name, got, err)
		}
		data, err := store.GetBytes(t.Context(), got.Upload.Object)
		if err != nil || string(data) != large || got.Upload.Size != int64(len(large)) {
			t.Errorf("%s: got %d bytes, %v, want %d", name, len(data), err, len(large))
		}
	}
}

func TestAFullStreamIsBackpressureAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	stream, err := b.js.Stream(t.Context(), messages.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	full := stream.CachedInfo().Config
	full.MaxMsgs = 1
	if _, err := b.js.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	b.bucket()
	ctx, k := within(t, testkit.Patience), b.c.KB("kb1")
	first, err := k.Publish(ctx, doc("first", "x"))
	if err != nil {
		t.Fatal(err)
	}
	large := Document{Submit: messages.Submit{DocID: "large"}, Content: bytes.NewReader(make([]byte, 2<<20))}
	if _, err := k.Publish(ctx, large); !errors.Is(err, ErrBackpressure) || b.objects() != 0 {
		t.Errorf("got %v and %d objects, want backpressure and none", err, b.objects())
	}
	large.Content = bytes.NewReader(make([]byte, 2<<20))
	o, err := k.Prepare(ctx, large)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Send(ctx, o); !errors.Is(err, ErrBackpressure) {
		t.Errorf("got %v, want backpressure", err)
	}
	if err := stream.DeleteMsg(ctx, first.Sequence); err != nil {
		t.Fatal(err)
	}
	if s, err := k.Send(ctx, o); err != nil || s.ID != o.ID() || b.objects() != 1 {
		t.Errorf("again: got %+v, %v, want it stored with its object", s, err)
	}
}

func TestPublishWaitReturnsTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  messages.DocumentStatus
		failure *messages.Error
		code    messages.Code
	}{
		{messages.StatusReady, nil, ""},
		{messages.StatusSuperseded, nil, ""},
		{messages.StatusFailed, messages.Errorf(messages.CodeNoText, "nothing to read"), messages.CodeNoText},
		{messages.StatusFailed, nil, messages.CodeInternal},
	} {
		b := newBench(t, Options{})
		b.answering(c.status, c.failure)
		e, err := b.c.KB("kb1").PublishWait(within(t, testkit.Patience), doc("d", "x"), WithMsgID("mine"))
		if e.Status != c.status || e.SubmitID != "mine" || e.Version != 3 {
			t.Errorf("%s: got %+v", c.status, e)
		}
		if c.code == "" && err != nil {
			t.Errorf("%s: got %v", c.status, err)
		}
		if c.code != "" {
			wantCode(t, string(c.status), err, c.code, "")
		}
	}
	b := newBench(t, Options{})
	b.answering(messages.StatusDeleted, nil)
	if e, err := b.c.KB("kb1").PublishDeleteWait(within(t, testkit.Patience), messages.Delete{DocID: "d"}); err != nil || e.Status != messages.StatusDeleted {
		t.Errorf("delete: got %+v, %v", e, err)
	}
}

func TestManyWaitsShareASubscription(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.answering(messages.StatusReady, nil)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			id := fmt.Sprint("m", i)
			e, err := b.c.KB(fmt.Sprint("kb", i%3)).PublishWait(within(t, testkit.Patience), doc("d", "x"), WithMsgID(id))
			if err != nil || e.SubmitID != id {
				t.Errorf("%s: got %+v, %v", id, e, err)
			}
		})
	}
	wg.Wait()
	if n := b.c.nc.NumSubscriptions(); len(b.c.listeners) != 0 || n > 1 { // one is that of replies
		t.Errorf("%d listeners and %d subscriptions are left", len(b.c.listeners), n)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	if _, err := b.c.KB("kb1").PublishWait(within(t, 300*time.Millisecond), doc("d", "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if len(b.c.listeners) != 0 {
		t.Error("a listener is left")
	}
}

func TestAnEndWhoseEventIsMissedIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Silence: 20 * time.Millisecond})
	serve(t, b.nc, messages.OpDocGet, func(context.Context, bus.Request) (any, error) {
		return messages.DocumentInfo{DocID: "d", Status: messages.StatusReady, Version: 7, Chunks: 2, SubmittedAt: time.Now()}, nil
	})
	e, err := b.c.KB("kb1").PublishWait(within(t, testkit.Patience), doc("d", "x"), WithMsgID("mine"))
	if err != nil || e.Status != messages.StatusReady || e.Version != 7 || e.Chunks != 2 || e.SubmitID != "mine" || e.KB != "kb1" {
		t.Errorf("got %+v, %v, want Ready of version 7", e, err)
	}
}

func TestTheEndIsToldFromTheStateOnlyWhereItIsSure(t *testing.T) {
	t.Parallel()
	began := time.Now()
	ready := func(version int64, submitted time.Time) messages.DocumentInfo {
		return messages.DocumentInfo{DocID: "d", Status: messages.StatusReady, Version: version, SubmittedAt: submitted}
	}
	missing := messages.Errorf(messages.CodeDocumentNotFound, "is not there")
	b := newBench(t, Options{})
	var info messages.DocumentInfo
	var failure error
	serve(t, b.nc, messages.OpDocGet, func(context.Context, bus.Request) (any, error) { return info, failure })
	b.refusals(map[int64]messages.DeadLetterDetail{
		1: {DeadLetter: messages.DeadLetter{DocID: "d", At: began.Add(-time.Hour)}, Headers: map[string]string{messages.HeaderDeadMsgID: "long ago"}},
		2: {DeadLetter: messages.DeadLetter{DocID: "d", At: began}, Headers: map[string]string{messages.HeaderDeadMsgID: "refused"}},
		3: {DeadLetter: messages.DeadLetter{DocID: "d", At: began}, Headers: map[string]string{messages.HeaderDeadMsgID: "another's"}},
		4: {DeadLetter: messages.DeadLetter{DocID: "other", At: began}, Headers: map[string]string{messages.HeaderDeadMsgID: "id"}},
	})
	waiting, err := b.c.KB("kb1").Publish(within(t, testkit.Patience), doc("d", "x"))
	if err != nil {
		t.Fatal(err)
	}
	const gone = 99 // no message of this number
	for _, c := range []struct {
		what   string
		seen   int64 // version that an event told
		seq    uint64
		remove bool
		info   messages.DocumentInfo
		err    error
		want   messages.DocumentStatus // empty: still open
	}{
		{"the version of the event is ready", 3, gone, false, ready(3, began.Add(-time.Hour)), nil, messages.StatusReady},
		{"a newer version is there", 3, gone, false, ready(4, began), nil, messages.StatusSuperseded},
		{"an older state answers", 3, gone, false, ready(2, began), nil, ""},
		{"it was deleted", 3, gone, false, messages.DocumentInfo{}, missing, messages.StatusDeleted},
		{"still indexing", 3, gone, false, messages.DocumentInfo{Status: messages.StatusIndexing, Version: 3}, nil, ""},
		{"submitted after ours was sent", 0, waiting.Sequence, false, ready(7, began.Add(time.Second)), nil, messages.StatusReady},
		{"an old version, and ours waits", 0, waiting.Sequence, false, ready(7, began.Add(-time.Minute)), nil, ""},
		{"an old version, and ours is taken", 0, gone, false, ready(7, began.Add(-time.Minute)), nil, messages.StatusReady},
		{"nothing, and ours waits", 0, waiting.Sequence, false, messages.DocumentInfo{}, missing, ""},
		{"nothing, and ours is taken", 0, gone, false, messages.DocumentInfo{}, missing, messages.StatusFailed},
		{"a delete that waits", 0, waiting.Sequence, true, messages.DocumentInfo{}, missing, ""},
		{"a delete that is done", 0, gone, true, messages.DocumentInfo{}, missing, messages.StatusDeleted},
		{"a delete that something newer overtook", 0, gone, true, ready(9, began), nil, messages.StatusSuperseded},
	} {
		info, failure = c.info, c.err
		e, over, err := b.c.KB("kb1").Ended(within(t, testkit.Patience), Submitted{
			ID: "id", DocID: "d", Sequence: c.seq, At: began, Version: c.seen, Delete: c.remove,
		})
		if err != nil || over != (c.want != "") || e.Status != c.want {
			t.Errorf("%s: got %q, %v, %v, want %q", c.what, e.Status, over, err, c.want)
		}
	}
}

func TestARefusalWhoseEventIsMissedIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{RetryFor: -1})
	began := time.Now()
	serve(t, b.nc, messages.OpDocGet, func(context.Context, bus.Request) (any, error) {
		return messages.DocumentInfo{DocID: "d", Status: messages.StatusReady, Version: 7, SubmittedAt: began.Add(-time.Minute)}, nil
	})
	const gone = 99 // no message of this number
	refused := Submitted{ID: "refused", DocID: "d", Sequence: gone, At: began}
	if _, over, err := b.c.KB("kb1").Ended(within(t, testkit.Patience), refused); over || err == nil {
		t.Errorf("dead letters cannot be read: got %v, %v, want that it cannot be told", over, err)
	}
	b.refusals(map[int64]messages.DeadLetterDetail{
		5: {
			DeadLetter: messages.DeadLetter{DocID: "d", At: began, Error: messages.Error{Code: messages.CodeValidation, Field: "metadata.yeer"}},
			Headers:    map[string]string{messages.HeaderDeadMsgID: "refused"},
		},
	})
	e, over, err := b.c.KB("kb1").Ended(within(t, testkit.Patience), refused)
	if err != nil || !over || e.Status != messages.StatusFailed || e.Error == nil || e.Error.Field != "metadata.yeer" || e.Version != 0 {
		t.Errorf("got %+v, %v, %v, want Failed with the reason", e, over, err)
	}
}

func TestWhatATenantMayNotSeeIsSaid(t *testing.T) {
	t.Parallel()
	operator, tenant := tenantServer(t, false)
	c, err := New(tenant, "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.KB("kb").Watch(func(messages.Event) {}); !errors.Is(err, ErrPermission) {
		t.Errorf("watch: got %v, want permission denied", err)
	}
	serve(t, operator, messages.OpDocGet, func(context.Context, bus.Request) (any, error) {
		return nil, messages.Errorf(messages.CodeDocumentNotFound, "is not there")
	})
	for range 2 { // the second time without another look
		if _, over, err := c.KB("kb").Ended(within(t, testkit.Patience), Submitted{DocID: "d", Sequence: 1, At: time.Now()}); over || !errors.Is(err, ErrPermission) {
			t.Errorf("ended: got %v, %v, want permission denied", over, err)
		}
	}
	if _, err := c.KB("kb").PublishDelete(within(t, testkit.Patience), messages.Delete{DocID: "d"}); !errors.Is(err, ErrPermission) {
		t.Errorf("publish: got %v, want permission denied", err)
	}
}

func TestWatchSeesWhatIsPublishedAfterwards(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	var mu sync.Mutex
	var one, all string
	collect := func(into *string) func(messages.Event) {
		return func(e messages.Event) {
			mu.Lock()
			defer mu.Unlock()
			*into += e.KB + " "
		}
	}
	stopOne, err := b.c.KB("kb1").Watch(collect(&one))
	if err != nil {
		t.Fatal(err)
	}
	stopAll, err := b.c.Watch(collect(&all))
	if err != nil {
		t.Fatal(err)
	}
	for _, kb := range []string{"kb1", "kb2", "kb1"} {
		b.tell(messages.Event{Tenant: "t", KB: kb, DocID: "d", Status: messages.StatusReady})
	}
	testkit.Eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		if one != "kb1 kb1 " || all != "kb1 kb2 kb1 " {
			return fmt.Errorf("got %q and %q", one, all)
		}
		return nil
	})
	stopOne()
	stopAll()
}
