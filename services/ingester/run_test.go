package ingester_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/ingester"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  ingester.Config
		deps ingester.Deps
		want []string
	}{
		{ingester.Config{}, ingester.Deps{}, []string{"ingester: a JetStream handle and a store are required"}},
		{ingester.Config{}, ingester.Deps{Store: pgstore.New(nil)}, []string{"a JetStream handle and a store are required"}},
		{ingester.Config{ParseWorkers: -1, MaxDocumentBytes: -1}, ingester.Deps{}, []string{"parse-workers", "max-document-bytes", "must not be negative"}},
	} {
		_, err := ingester.New(c.cfg, c.deps)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %q in it", c.cfg, err, want)
			}
		}
	}
}

func TestRunNamesTheRemedyOfAnOlderDatabaseOrBus(t *testing.T) {
	t.Parallel()
	js, _ := newBus(t)
	_, connectBare := testkit.NATS(t)
	bare := testkit.JetStream(t, connectBare())
	for _, c := range []struct {
		name, url string
		js        jetstream.JetStream
		want      string
	}{
		{"no schema", testkit.EmptyPostgresURL(t), js, "no Weir schema: run `weir migrate`"},
		{"no streams", testkit.PostgresURL(t), bare, "stream WEIR_DOCS is missing; run `weir migrate`"},
	} {
		svc, err := ingester.New(ingester.Config{}, ingester.Deps{Lent: service.Lent{JS: c.js}, Store: pgstore.New(testkit.Pool(t, c.url, pgstore.Configure))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		err = svc.Run(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// running is a running ingester.
type running struct {
	*lab
	js   jetstream.JetStream
	nc   *nats.Conn
	stop func()
}

func run(t *testing.T) *running {
	t.Helper()
	l := newLab(t, nil)
	js, connect := newBus(t)
	work := testkit.JetStream(t, connect())
	services := testkit.NewServices(t)
	services.Add(ingester.New(ingester.Config{MaxDocumentBytes: maxBytes}, ingester.Deps{
		Lent: service.Lent{JS: work, Requests: connect(), Logger: testkit.Logger(t), Ready: services.Ready}, Store: l.store, AckWait: time.Second,
	}))
	services.Start()
	return &running{lab: l, js: js, nc: js.Conn(), stop: services.Stop}
}

// stored waits until a stream has stored n messages in all, and returns their bodies.
func (r *running) stored(stream string, n int) [][]byte {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), stream)
	if err != nil {
		r.t.Fatal(err)
	}
	testkit.Eventually(r.t, func() error {
		info, err := s.Info(r.t.Context())
		if err == nil && info.State.Msgs != uint64(n) { //nolint:gosec // small
			err = fmt.Errorf("%s has %d messages, want %d", stream, info.State.Msgs, n)
		}
		return err
	})
	var out [][]byte
	for seq := range uint64(n) { //nolint:gosec // small
		msg, err := s.GetMsg(r.t.Context(), seq+1)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, msg.Data)
	}
	return out
}

// events is what n stored events tell, sorted.
func (r *running) events(n int) []string {
	r.t.Helper()
	var out []string
	for _, data := range r.stored(messages.StreamEvents, n) {
		var e messages.Event
		if err := json.Unmarshal(data, &e); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s v%d %s", e.DocID, e.Status, e.Version, e.SubmitID))
	}
	slices.Sort(out)
	return out
}

func TestRunTakesDocumentsFromTheStreamToTheEmbedder(t *testing.T) {
	r := run(t)
	publish := func(subject, id, body string) {
		t.Helper()
		var opts []jetstream.PublishOpt
		if id != "" {
			opts = append(opts, jetstream.WithMsgID(id))
		}
		if _, err := r.js.Publish(t.Context(), subject, []byte(body), opts...); err != nil {
			t.Fatal(err)
		}
	}
	publish(messages.SubmitSubject(tenant, "docs"), "pub-1", `{"docId":"a","text":"one"}`)
	publish(messages.SubmitSubject(tenant, "docs"), "", `{"docId":"b","text":"two"}`)
	publish(messages.SubmitSubject(tenant, "docs"), "no text: \xff", `{"docId":"c","text":"three"}`)
	publish(messages.SubmitSubject(tenant, "docs"), "pub-4", `{"docId":"d","text":7}`)
	publish(messages.SubmitSubject(tenant, "docs"), "pub-5", `{"docId":"e","contentType":"image/png","text":"five"}`)
	if n := len(r.stored(messages.StreamEmbed, 3)); n != 3 {
		t.Errorf("got %d messages for the embedder", n)
	}
	if n := len(r.stored(messages.StreamDead, 2)); n != 2 {
		t.Errorf("got %d dead letters", n)
	}
	got := r.events(8) // Failed is for the indexer to tell
	want := []string{
		"a Indexing v1 pub-1", "a Pending v1 pub-1", "b Indexing v1 WEIR_DOCS:2", "b Pending v1 WEIR_DOCS:2",
		"c Indexing v1 WEIR_DOCS:3", "c Pending v1 WEIR_DOCS:3", "e Indexing v1 pub-5", "e Pending v1 pub-5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	publish(messages.DeleteSubject(tenant, "docs"), "del-1", `{"docId":"a"}`)
	got = r.events(10)
	for _, want := range []string{"a Deleted v2 del-1", "a Superseded v1 pub-1"} {
		if !slices.Contains(got, want) {
			t.Errorf("got %q, want %q among them", got, want)
		}
	}
	r.stop()
	for _, stream := range []string{messages.StreamDocs, messages.StreamParse} {
		s, err := r.js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.Msgs; n != 0 {
			t.Errorf("%s holds %d messages after the stop, want none", stream, n)
		}
	}
}

// call makes a request at the door.
func (r *running) call(op, key string, body any) (messages.SubmitReply, error) {
	r.t.Helper()
	h := bus.Header{messages.HeaderRequestID: "req"} // callers use request ids again
	if key != "" {
		h[messages.HeaderIdempotencyKey] = key
	}
	var reply messages.SubmitReply
	err := bus.Client{NC: r.nc}.Call(r.t.Context(), messages.RPCSubject(tenant, "docs", op), h, body, &reply)
	return reply, err
}

func TestTheDoorRecognisesAnIdempotencyKeyAndNothingElse(t *testing.T) {
	r := run(t)
	submit := func(key, text string) messages.SubmitReply {
		t.Helper()
		reply, err := r.call(messages.OpSubmit, key, messages.Submit{DocID: "doc", Text: &text})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first := submit("key-1", "one")
	if first.Version != 1 || first.Status != messages.StatusPending || first.SubmitID != "key-1" {
		t.Errorf("got %+v", first)
	}
	if again := submit("key-1", "whatever it says now"); again != first {
		t.Errorf("the same key: got %+v, want %+v", again, first)
	}
	if got := submit("", "two"); got.Version != 2 || got.SubmitID != "req" {
		t.Errorf("without a key: got %+v, want version 2", got)
	}
	if got := submit("", "three"); got.Version != 3 {
		t.Errorf("the same request id: got %+v, want version 3", got)
	}
	if got := submit("key-2", "three"); got.Version != 3 || !got.Unchanged {
		t.Errorf("another key: got %+v, want version 3 unchanged", got)
	}
	deleted, err := r.call(messages.OpDelete, "key-3", messages.Delete{DocID: "doc"})
	if err != nil || deleted.Status != messages.StatusDeleted {
		t.Fatalf("got %+v (%v)", deleted, err)
	}
	if again, err := r.call(messages.OpDelete, "key-3", messages.Delete{DocID: "doc"}); err != nil || again != deleted {
		t.Errorf("the same delete: got %+v (%v), want %+v", again, err, deleted)
	}
	_, err = r.call(messages.OpDelete, "key-4", messages.Delete{DocID: "doc"})
	wantError(t, "another delete", err, messages.CodeDocumentNotFound, "docId")
	_, err = r.call(messages.OpSubmit, strings.Repeat("k", 129), messages.Submit{DocID: "doc", Text: new(string)})
	wantError(t, "a long key", err, messages.CodeValidation, messages.HeaderIdempotencyKey)
	err = bus.Client{NC: r.nc}.Call(t.Context(), messages.RPCSubject("ACME", "docs", messages.OpSubmit), nil, messages.Submit{DocID: "doc", Text: new(string)}, nil)
	wantError(t, "a tenant that cannot be", err, messages.CodeValidation, "tenant")
}

func TestEndpointsShowTheirSchemas(t *testing.T) {
	r := run(t)
	subject, err := micro.ControlSubject(micro.InfoVerb, "weir-ingester", "")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := r.nc.Request(subject, nil, testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range info.Endpoints {
		got = append(got, e.Subject)
		for _, key := range []string{messages.MetadataRequest, messages.MetadataReply} {
			if !json.Valid([]byte(e.Metadata[key])) {
				t.Errorf("%s of %s: got %q, want a schema", key, e.Name, e.Metadata[key])
			}
		}
	}
	slices.Sort(got)
	if want := []string{"weir.rpc.*.*.delete", "weir.rpc.*.*.submit"}; !slices.Equal(got, want) {
		t.Errorf("endpoints: got %v, want %v", got, want)
	}
}

func TestAStopWhileStartingIsClean(t *testing.T) {
	l := newLab(t, nil)
	js, _ := newBus(t)
	for wait := time.Duration(0); wait < 100*time.Millisecond; wait += 7 * time.Millisecond {
		svc, err := ingester.New(ingester.Config{}, ingester.Deps{Lent: service.Lent{JS: js}, Store: l.store})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if err := svc.Run(ctx); err != nil {
			t.Errorf("stopped after %s: got %v, want a clean stop", wait, err)
		}
		cancel()
	}
}
