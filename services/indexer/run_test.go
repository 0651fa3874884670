package indexer_test

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
	"github.com/weir-project/weir/services/indexer"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  indexer.Config
		deps indexer.Deps
		want []string
	}{
		{indexer.Config{}, indexer.Deps{}, []string{"indexer: a JetStream handle and a store are required"}},
		{indexer.Config{}, indexer.Deps{Store: pgstore.New(nil)}, []string{"a JetStream handle and a store are required"}},
		{indexer.Config{Workers: -1, GroupWait: -1, Grace: -1}, indexer.Deps{}, []string{"indexer-workers", "indexer-group-wait", "reconcile-grace", "must not be negative"}},
		{indexer.Config{Model: "m", Dims: 5000}, indexer.Deps{}, []string{"default-dims"}},
	} {
		_, err := indexer.New(c.cfg, c.deps)
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
		svc, err := indexer.New(indexer.Config{}, indexer.Deps{Lent: service.Lent{JS: c.js}, Store: pgstore.New(testkit.Pool(t, c.url, pgstore.Configure))})
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

// running is a running indexer.
type running struct {
	*lab
	js     jetstream.JetStream
	nc     *nats.Conn
	events jetstream.MessagesContext
	stop   func()
}

func run(t *testing.T, cfg indexer.Config) *running {
	t.Helper()
	l := newLab(t)
	js, connect := newBus(t)
	work := testkit.JetStream(t, connect())
	services := testkit.NewServices(t)
	services.Add(indexer.New(cfg, indexer.Deps{
		Lent: service.Lent{JS: work, Requests: connect(), Logger: testkit.Logger(t), Ready: services.Ready}, Store: l.store, AckWait: time.Second,
	}))
	services.Start()
	r := &running{lab: l, js: js, nc: js.Conn(), stop: services.Stop}
	r.listen()
	return r
}

// listen subscribes to every event from now on.
func (r *running) listen() {
	r.t.Helper()
	c, err := r.js.OrderedConsumer(r.t.Context(), messages.StreamEvents, jetstream.OrderedConsumerConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.events, err = c.Messages(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.events.Stop)
}

// next waits for an event.
func (r *running) next() messages.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testkit.Patience)
	defer cancel()
	msg, err := r.events.Next(jetstream.NextContext(ctx))
	if err != nil {
		r.t.Fatalf("no event: %v", err)
	}
	var e messages.Event
	if err := json.Unmarshal(msg.Data(), &e); err != nil {
		r.t.Fatal(err)
	}
	return e
}

// publish stores index work as the embedder does.
func (r *running) publish(ref messages.Ref, w messages.IndexWork) {
	r.t.Helper()
	pub, err := bus.NewPublisher(r.nc, bus.PublisherConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	msg, err := bus.Work(messages.StageIndex, messages.TypeIndex, ref, w.Part, w)
	if err == nil {
		_, err = pub.PublishAck(r.t.Context(), msg)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestRunMakesVersionsReadyFailedAndStopsCleanly(t *testing.T) {
	r := run(t, indexer.Config{})
	for i := range 20 {
		ref := r.staged(fmt.Sprintf("d%02d", i), "one\ntwo")
		w := indexWork(ref, 0, 1, 0, 1)
		if i == 7 { // its vector is damaged on the way
			w.Vectors[1].Vector = []byte{1, 2, 3}
		}
		r.publish(ref, w)
	}
	got := map[messages.DocumentStatus][]string{}
	for range 20 {
		e := r.next()
		got[e.Status] = append(got[e.Status], e.DocID)
		if e.Status == messages.StatusFailed && (e.Error == nil || e.Error.Field != "vectors[1]" || e.Error.Stage != messages.StageIndex) {
			t.Errorf("got %+v (%v)", e, e.Error)
		}
	}
	if len(got[messages.StatusReady]) != 19 || !slices.Equal(got[messages.StatusFailed], []string{"d07"}) {
		t.Errorf("got %v, want all Ready but d07", got)
	}
	r.stop()
	if n := r.count("SELECT count(*) FROM documents WHERE status = 'Ready'"); n != 19 || r.count("SELECT count(*) FROM dead_letters") != 1 {
		t.Errorf("got %d Ready documents, want 19 and one dead letter", n)
	}
	for _, stream := range []string{messages.StreamIndex, messages.StreamDead} {
		s, err := r.js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.Msgs; n != 0 {
			t.Errorf("%s holds %d messages after the stop, want none", stream, n)
		}
	}
}

func TestRunFinishesWhatWasLost(t *testing.T) {
	r := run(t, indexer.Config{ReconcileEvery: 50 * time.Millisecond, Grace: 200 * time.Millisecond})
	ref := r.staged("doc", "one")
	if err := r.store.StageVectors(t.Context(), ref, []pgstore.Vector{{Values: []float32{1, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	if e := r.next(); e.Status != messages.StatusReady || e.DocID != "doc" { // its last message never came
		t.Errorf("got %+v, want Ready", e)
	}
}

func TestEndpointsAreDiscoverableAndAnswer(t *testing.T) {
	r := run(t, indexer.Config{Model: "fake", Dims: dims})
	subject, err := micro.ControlSubject(micro.InfoVerb, "weir-indexer", "")
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
	for _, want := range []string{
		"weir.rpc.*._.kb_create", "weir.rpc.*.*.kb_update", "weir.rpc.*.*.kb_delete",
		"weir.rpc.*._.dlq_list", "weir.rpc.*._.dlq_get", "weir.rpc.*._.dlq_replay", "weir.rpc.*._.dlq_discard",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("endpoints: got %v, want %s among them", got, want)
		}
	}
	client := bus.Client{NC: r.nc}
	var kb messages.KBInfo
	create := messages.RPCSubject(tenant, messages.TenantScope, messages.OpKBCreate)
	err = client.Call(t.Context(), create, nil, messages.CreateKB{KnowledgeBaseName: "words", IndexType: messages.IndexTypeBM25}, &kb)
	if err != nil || kb.KnowledgeBaseName != "words" {
		t.Errorf("got %+v (%v)", kb, err)
	}
	err = client.Call(t.Context(), create, nil, messages.CreateKB{KnowledgeBaseName: "vectors"}, &kb)
	wantError(t, "without an embedder", err, messages.CodeEmbeddingUnavailable, "")
	for subject, field := range map[string]string{
		messages.RPCSubject("acme\xff", messages.TenantScope, messages.OpDLQList): "tenant",
		messages.RPCSubject("ACME", messages.TenantScope, messages.OpKBCreate):    "tenant",
		messages.RPCSubject(tenant, "Docs\xff", messages.OpKBDelete):              "knowledgeBaseName",
		messages.RPCSubject(tenant, messages.TenantScope, messages.OpKBUpdate):    "knowledgeBaseName",
		messages.RPCSubject(tenant, messages.AllScope, messages.OpKBDelete):       "knowledgeBaseName",
	} {
		err = client.Call(t.Context(), subject, nil, struct{}{}, nil)
		wantError(t, fmt.Sprintf("%q", subject), err, messages.CodeValidation, field)
	}
}

func TestAStopWhileStartingIsClean(t *testing.T) {
	l := newLab(t)
	js, _ := newBus(t)
	for wait := time.Duration(0); wait < 100*time.Millisecond; wait += 7 * time.Millisecond {
		svc, err := indexer.New(indexer.Config{}, indexer.Deps{Lent: service.Lent{JS: js}, Store: l.store})
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
