package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/embedder"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/retriever"
)

const (
	model = "conformance-model"
)

// world is all services in this process, on servers of their own. Every case has a tenant of its own, or
// shares one that nobody changes.
type world struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	embeddings *embeddings
	rerank     *reranker
	log        *safeBuffer
	sql        *statements

	mu     sync.Mutex
	shared map[string]*sync.Once
}

func newWorld(t testing.TB) *world {
	t.Helper()
	_, connect := testkit.NATS(t)
	w := &world{
		nc: connect(), embeddings: newEmbeddings(), rerank: newReranker(), log: &safeBuffer{}, sql: &statements{},
		shared: map[string]*sync.Once{},
	}
	w.js = testkit.JetStream(t, w.nc)
	if _, err := bus.Provision(t.Context(), w.js, messages.Streams(), messages.Stages(), bus.Settings{MaxBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	pool := testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure, func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.Tracer = 12, w.sql })
	vectors, scores := httptest.NewServer(w.embeddings), httptest.NewServer(w.rerank)
	t.Cleanup(vectors.Close)
	t.Cleanup(scores.Close)
	w.run(t, connect, pgstore.New(pool), vectors.URL+"/v1", scores.URL)
	t.Cleanup(w.embeddings.release)
	return w
}

// run starts the services and waits until each is ready.
func (w *world) run(t testing.TB, connect testkit.Connect, store *pgstore.Store, embeddingURL, rerankURL string) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelInfo})) // the default level
	services := testkit.NewServices(t)
	js := func() jetstream.JetStream { return testkit.JetStream(t, connect()) }
	services.Add(ingester.New(ingester.Config{}, ingester.Deps{Lent: service.Lent{JS: js(), Logger: log, Ready: services.Ready}, Store: store}))
	services.Add(embedder.New(embedder.Config{BaseURL: embeddingURL, Model: model, Dims: dims}, embedder.Deps{Lent: service.Lent{JS: js(), Logger: log, Ready: services.Ready}}))
	rerank := service.RerankProviders{{Name: "stub", URL: rerankURL + "/rerank", Models: []string{"stub-model"}}}
	services.Add(indexer.New(indexer.Config{Model: model, Dims: dims, Rerank: rerank}, indexer.Deps{Lent: service.Lent{JS: js(), Logger: log, Ready: services.Ready}, Store: store}))
	// The limits are those under which the contract's cases are written.
	services.Add(retriever.New(retriever.Config{Limits: "tablestore", Rerank: rerank}, retriever.Deps{NC: connect(), Store: store, Logger: log, Ready: services.Ready}))
	services.Start()
}

// request makes a request and decodes the data of its reply into out, which may be nil.
func (w *world) request(ctx context.Context, tenant, scope, op string, header bus.Header, in, out any) error {
	return bus.Client{NC: w.nc, RetryFor: testkit.Patience, Timeout: testkit.Patience}.Call(ctx, messages.RPCSubject(tenant, scope, op), header, in, out)
}

// prepare brings a case's fixture about and returns the tenant that has it.
func (w *world) prepare(t testing.TB, c *testCase, fixtures map[string]fixture) string {
	t.Helper()
	switch {
	case c.Own != nil:
		tenant := strings.ToLower(c.ID)
		w.build(t, tenant, *c.Own)
		return tenant
	case c.Uses != "":
		w.mu.Lock()
		once := w.shared[c.Uses]
		if once == nil {
			once = new(sync.Once)
			w.shared[c.Uses] = once
		}
		w.mu.Unlock()
		once.Do(func() { w.build(t, c.Uses, fixtures[c.Uses]) })
		return c.Uses
	}
	return "nobody"
}

func (w *world) build(t testing.TB, tenant string, f fixture) {
	t.Helper()
	if err := w.embeddings.know(f.Vectors); err != nil {
		t.Fatal(err)
	}
	for _, kb := range f.KnowledgeBases {
		var info messages.KBInfo
		if err := w.request(t.Context(), tenant, messages.TenantScope, messages.OpKBCreate, nil, []byte(kb.Create), &info); err != nil {
			t.Fatalf("fixture: create %s: %v", kb.Create, err)
		}
		var wanted []messages.SubmitReply
		for _, doc := range documents(t, kb.Documents) {
			wanted = append(wanted, w.submit(t, tenant, info.KnowledgeBaseName, doc))
		}
		for _, s := range wanted {
			w.await(t, tenant, info.KnowledgeBaseName, s, messages.StatusReady)
		}
	}
}

// documents are those of a fixture; where a macro makes a list, all of it.
func documents(t testing.TB, given []json.RawMessage) []json.RawMessage {
	t.Helper()
	var out []json.RawMessage
	for _, raw := range given {
		body, err := expand(raw)
		if err != nil {
			t.Fatal(err)
		}
		var several []json.RawMessage
		if json.Unmarshal(body, &several) == nil {
			out = append(out, several...)
			continue
		}
		out = append(out, body)
	}
	return out
}

// submit sends a document; its text may be made by a macro.
func (w *world) submit(t testing.TB, tenant, kb string, document []byte) messages.SubmitReply {
	t.Helper()
	var out messages.SubmitReply
	body, err := expand(document)
	if err == nil {
		err = w.request(t.Context(), tenant, kb, messages.OpSubmit, nil, []byte(body), &out)
	}
	if err != nil {
		t.Fatalf("submit %s: %v", clip(string(document)), err)
	}
	return out
}

// await waits until a document's newest version has a status.
func (w *world) await(t testing.TB, tenant, kb string, s messages.SubmitReply, want messages.DocumentStatus) {
	t.Helper()
	testkit.Eventually(t, func() error {
		var d messages.DocumentInfo
		err := w.request(t.Context(), tenant, kb, messages.OpDocGet, nil, messages.DocumentRef{DocID: s.DocID, Subspace: s.Subspace}, &d)
		if err != nil {
			return err
		}
		if d.Version != s.Version || d.Status != want {
			return fmt.Errorf("%s is %s in version %d (%v), want %s in %d", s.DocID, d.Status, d.Version, d.Error, want, s.Version)
		}
		return nil
	})
}

// pause stops, or with until in the past starts again, the consumers of a stage.
func (w *world) pause(t testing.TB, stage string, until time.Time) {
	t.Helper()
	for _, s := range messages.Stages() {
		if s.Name != stage {
			continue
		}
		stream, err := w.js.Stream(t.Context(), s.Stream)
		if err != nil {
			t.Fatal(err)
		}
		for lane := range s.Lanes {
			if _, err := stream.PauseConsumer(t.Context(), s.Durable(lane), until); err != nil {
				t.Fatalf("pause %s: %v", s.Durable(lane), err)
			}
		}
		return
	}
	t.Fatalf("there is no stage %s", stage)
}

func clip(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// statements keeps the distinct texts of the statements that were sent to Postgres.
type statements struct {
	mu    sync.Mutex
	texts map[string]struct{}
}

func (s *statements) see(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string]struct{}{}
	}
	s.texts[text] = struct{}{}
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.see(d.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		s.see(q.SQL)
	}
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// holding returns a statement that holds one of the texts.
func (s *statements) holding(text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) == 0 {
		return "", errors.New("no statement was seen at all")
	}
	for sql := range s.texts {
		if strings.Contains(sql, text) {
			return sql, nil
		}
	}
	return "", nil
}

var (
	_ pgx.QueryTracer = (*statements)(nil)
	_ pgx.BatchTracer = (*statements)(nil)
)

// safeBuffer is a buffer for several writers.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
