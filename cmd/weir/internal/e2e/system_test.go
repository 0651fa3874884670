package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/embedder"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func TestMain(m *testing.M) {
	parseworker.Main()
	goleak.VerifyTestMain(m)
}

const (
	tenant = "acme"
	model  = "fake-model"
)

// system is every service, run in this process on servers of its own.
type system struct {
	t    testing.TB
	nc   *nats.Conn
	js   jetstream.JetStream
	pool *pgxpool.Pool
	fake *fakeserver.Server
}

// options change what a test needs different.
type options struct {
	reconcile time.Duration // time between looks of the reconciler, and its grace
	tracer    trace.TracerProvider
	dims      int  // of the fake model; 0: 8
	quiet     bool // no log
}

func start(t testing.TB, o options) *system {
	t.Helper()
	if o.reconcile == 0 {
		o.reconcile = time.Minute
	}
	if o.dims == 0 {
		o.dims = 8
	}
	_, connect := testkit.NATS(t)
	s := &system{t: t, nc: connect(), fake: fakeserver.New(fakeserver.Options{Dims: o.dims})}
	var err error
	if s.js, err = jetstream.New(s.nc); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Provision(t.Context(), s.js, messages.Streams(), messages.Stages(), bus.Settings{MaxBytes: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(testkit.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	pgstore.Configure(cfg)
	if s.pool, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	provider := httptest.NewServer(s.fake)
	t.Cleanup(provider.Close)
	s.run(o, provider.URL+"/v1", connect)
	return s
}

// run starts the services and waits until each is ready.
func (s *system) run(o options, embeddingURL string, connect testkit.Connect) {
	s.t.Helper()
	store, log := pgstore.New(s.pool), testkit.Logger(s.t)
	if o.quiet {
		log = slog.New(slog.DiscardHandler)
	}
	ready := make(chan struct{}, 8)
	isReady := func() { ready <- struct{}{} }
	js := func() jetstream.JetStream {
		js, err := jetstream.New(connect())
		if err != nil {
			s.t.Fatal(err)
		}
		return js
	}
	type service interface {
		Run(ctx context.Context) error
	}
	var all []service
	add := func(svc service, err error) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, svc)
	}
	add(ingester.New(ingester.Config{}, ingester.Deps{JS: js(), Store: store, Logger: log, Tracer: o.tracer, Ready: isReady}))
	add(embedder.New(embedder.Config{BaseURL: embeddingURL, Model: model, Dims: o.dims}, embedder.Deps{JS: js(), Logger: log, Tracer: o.tracer, Ready: isReady}))
	add(indexer.New(indexer.Config{ReconcileEvery: o.reconcile, Grace: o.reconcile, Model: model, Dims: o.dims}, indexer.Deps{JS: js(), Store: store, Logger: log, Tracer: o.tracer, Ready: isReady}))
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	for _, svc := range all {
		g.Go(func() error { return svc.Run(ctx) })
	}
	s.t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			s.t.Errorf("services: %v", err)
		}
	})
	for range all {
		select {
		case <-ready:
		case <-time.After(20 * time.Second):
			s.t.Fatal("the services did not become ready")
		case <-ctx.Done():
			s.t.Fatalf("a service ended: %v", context.Cause(ctx))
		}
	}
}

// call makes a request and decodes its data.
func call[T any](s *system, scope, op string, in any) (T, error) {
	var out T
	err := bus.Call(s.t.Context(), s.nc, messages.RPCSubject(tenant, scope, op), nil, in, &out)
	return out, err
}

func (s *system) createKB(in messages.CreateKB) messages.KBInfo {
	s.t.Helper()
	info, err := call[messages.KBInfo](s, messages.TenantScope, messages.OpKBCreate, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// events collects the terminal events of a knowledge base from now on.
type events struct {
	t    testing.TB
	cons jetstream.Consumer
}

func (s *system) watch(kb string) *events {
	s.t.Helper()
	cons, err := s.js.OrderedConsumer(s.t.Context(), messages.StreamEvents, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{messages.SubjectEvents + "." + tenant + "." + kb + ".>"}, DeliverPolicy: jetstream.DeliverNewPolicy,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return &events{s.t, cons}
}

// terminal returns the next n terminal events by the submit they answer.
func (e *events) terminal(n int) map[string]messages.Event {
	e.t.Helper()
	out := map[string]messages.Event{}
	deadline := time.Now().Add(30 * time.Second)
	for len(out) < n {
		if time.Now().After(deadline) {
			e.t.Fatalf("got %d terminal events, want %d: %v", len(out), n, out)
		}
		msg, err := e.cons.Next(jetstream.FetchMaxWait(2 * time.Second))
		if err != nil {
			continue
		}
		var ev messages.Event
		if err := json.Unmarshal(msg.Data(), &ev); err != nil {
			e.t.Fatal(err)
		}
		if !ev.Status.Terminal() {
			continue
		}
		if have, twice := out[ev.SubmitID]; twice {
			e.t.Fatalf("submit %s has two terminal events: %+v and %+v", ev.SubmitID, have, ev)
		}
		out[ev.SubmitID] = ev
	}
	return out
}

// publish puts a submit on the stream under a message id.
func (s *system) publish(kb, id string, submit messages.Submit) {
	s.t.Helper()
	body, err := messages.Encode(submit)
	if err != nil {
		s.t.Fatal(err)
	}
	s.publishRaw(kb, id, nil, body)
}

func (s *system) publishRaw(kb, id string, header nats.Header, body []byte) {
	s.t.Helper()
	msg := &nats.Msg{Subject: messages.SubmitSubject(tenant, kb), Header: header, Data: body}
	if _, err := s.js.PublishMsg(s.t.Context(), msg, jetstream.WithMsgID(id)); err != nil {
		s.t.Fatal(err)
	}
}

func text(s string) *string { return &s }

func (s *system) count(sql string, args ...any) int {
	s.t.Helper()
	var n int
	if err := s.pool.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func doc(i int) messages.Submit {
	return messages.Submit{DocID: fmt.Sprintf("doc-%03d", i), Title: fmt.Sprintf("Title %d", i), Text: text(fmt.Sprintf("Text number %d of the test.\n\nIt has two paragraphs.", i))}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
