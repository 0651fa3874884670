package e2e_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/embedder"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
	"github.com/weir-project/weir/services/retriever"
)

func TestMain(m *testing.M) {
	parseworker.Main()
	goleak.VerifyTestMain(m, testkit.UploadLeak())
}

const (
	tenant = "acme"
	model  = "fake-model"
)

// system is every service, run in this process on servers of its own, as a tenant sees it.
type system struct {
	t      testing.TB
	tenant string
	nc     *nats.Conn
	js     jetstream.JetStream
	pool   *pgxpool.Pool
	fake   *provider
	sent   *[]string // ids of the submits and deletes of this tenant
}

// options change what a test needs different.
type options struct {
	reconcile  time.Duration                             // time between looks of the reconciler, and its grace
	tracer     func(service string) trace.TracerProvider // nil: no spans
	dims       int                                       // of the fake model; 0: 8
	quiet      bool                                      // no log
	maxBytes   int64                                     // of a document; 0: the default
	housekeep  time.Duration                             // time between rounds of purging; 0: the default
	queryGrace time.Duration                             // how long a deleted knowledge base's data stays; 0: the default
	embedding  int                                       // messages that the embedder has in hand; 0: the default
	instant    bool                                      // vectors computed beforehand, of any text; fake is not asked
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
	s := &system{t: t, tenant: tenant, nc: connect(), fake: newProvider(o.dims), sent: new([]string)}
	s.js = testkit.JetStream(t, s.nc)
	if _, err := bus.Provision(t.Context(), s.js, messages.Streams(), messages.Stages(), bus.Settings{MaxBytes: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	s.pool = testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure, func(c *pgxpool.Config) { c.MaxConns = 12 })
	var vectors http.Handler = s.fake
	if o.instant {
		vectors = fakeserver.NewInstant(o.dims)
	}
	provider := httptest.NewServer(vectors)
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
	services := testkit.NewServices(s.t)
	js := func() jetstream.JetStream { return testkit.JetStream(s.t, connect()) }
	tracer := func(name string) trace.TracerProvider {
		if o.tracer == nil {
			return nil
		}
		return o.tracer(name)
	}
	services.Add(ingester.New(ingester.Config{MaxDocumentBytes: o.maxBytes}, ingester.Deps{
		Lent: service.Lent{JS: js(), Logger: log, Tracer: tracer("ingester"), Ready: services.Ready}, Store: store,
	}))
	services.Add(embedder.New(embedder.Config{BaseURL: embeddingURL, Model: model, Dims: o.dims, Workers: o.embedding}, embedder.Deps{
		Lent: service.Lent{JS: js(), Logger: log, Tracer: tracer("embedder"), Ready: services.Ready},
	}))
	services.Add(indexer.New(indexer.Config{
		ReconcileEvery: o.reconcile, Grace: o.reconcile, Model: model, Dims: o.dims, HousekeepingEvery: o.housekeep, QueryGrace: o.queryGrace,
	}, indexer.Deps{Lent: service.Lent{JS: js(), Logger: log, Tracer: tracer("indexer"), Ready: services.Ready}, Store: store}))
	services.Add(retriever.New(retriever.Config{}, retriever.Deps{NC: connect(), Store: store, Logger: log, Tracer: tracer("retriever"), Ready: services.Ready}))
	services.Start()
}

// call makes a request and decodes its data.
func call[T any](s *system, scope, op string, in any) (T, error) {
	var out T
	err := s.client().Call(s.t.Context(), messages.RPCSubject(s.tenant, scope, op), nil, in, &out)
	return out, err
}

// client waits for answers as long as anything is waited for.
func (s *system) client() bus.Client {
	return bus.Client{NC: s.nc, RetryFor: testkit.Patience, Timeout: testkit.Patience}
}

func (s *system) createKB(in messages.CreateKB) messages.KBInfo {
	s.t.Helper()
	info, err := call[messages.KBInfo](s, messages.TenantScope, messages.OpKBCreate, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return info
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
	s.publishTo(messages.SubmitSubject(s.tenant, kb), id, header, body)
}

// publishDelete puts a delete on the stream.
func (s *system) publishDelete(kb, id string, del messages.Delete) {
	s.t.Helper()
	body, err := messages.Encode(del)
	if err != nil {
		s.t.Fatal(err)
	}
	s.publishTo(messages.DeleteSubject(s.tenant, kb), id, nil, body)
}

func (s *system) publishTo(subject, id string, header nats.Header, body []byte) {
	s.t.Helper()
	msg := &nats.Msg{Subject: subject, Header: header, Data: body}
	ack, err := s.js.PublishMsg(s.t.Context(), msg, jetstream.WithMsgID(s.msgID(id)))
	if err != nil || ack.Duplicate {
		s.t.Fatalf("publish %s to %q: %+v, %v", id, subject, ack, err)
	}
	*s.sent = append(*s.sent, id)
}

// msgID is the Nats-Msg-Id of a test's id: a stream takes equal ones for the same message, whoever sends.
func (s *system) msgID(id string) string { return s.tenant + "/" + id }

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
