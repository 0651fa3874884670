package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/cmd/weir/internal/doctor"
	"github.com/weir-project/weir/cmd/weir/internal/testweir"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clinic is a healthy installation, whose parts tests break.
type clinic struct {
	deps doctor.Deps
	url  string
	pool *pgxpool.Pool
}

var errNotThere = errors.New("not there")

// nobus and nobase are for tests of the other half.
func nobus(context.Context) (*nats.Conn, error)     { return nil, errNotThere }
func nobase(context.Context) (*pgxpool.Pool, error) { return nil, errNotThere }
func deps() doctor.Deps {
	return doctor.Deps{
		Connect: nobus, Database: nobase, Tenant: testweir.Tenant, StuckAfter: 10 * time.Minute, Patience: 20 * time.Second,
	}
}

func withDatabase(t *testing.T, url string) *clinic {
	t.Helper()
	c := &clinic{deps: deps(), url: url, pool: testkit.Pool(t, url)}
	c.deps.DatabaseURL = func() (string, error) { return url, nil }
	c.deps.Database = func(ctx context.Context) (*pgxpool.Pool, error) { return pgxpool.New(ctx, url) }
	return c
}

func (c *clinic) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := c.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// kb inserts a knowledge base with a live generation and its partition.
func (c *clinic) kb(t *testing.T) {
	t.Helper()
	c.exec(t, `INSERT INTO knowledge_bases (tenant, name, index_type) VALUES ('default', 'books', 'hybrid')`)
	c.exec(t, `INSERT INTO generations (kb_id, state, space, dims, parser, chunking, analyzer)
		VALUES (1, 'live', '{"model":"m","dims":8,"metric":"cosine"}', 8, 'p', '{}', 'lex1')`)
	c.exec(t, `CREATE TABLE chunks_g1 (LIKE chunks INCLUDING DEFAULTS)`)
	c.exec(t, `ALTER TABLE chunks ATTACH PARTITION chunks_g1 FOR VALUES IN (1)`)
}

func (c *clinic) document(t *testing.T, id, status string, age time.Duration) {
	t.Helper()
	c.exec(t, `INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq, updated_at)
		VALUES (1, '_default', $1, 1, $2, 1, 1, now() - make_interval(secs => $3))`, id, status, age.Seconds())
}

// expect looks for a finding of the check with the level, that says and fixes what is given.
func expect(t *testing.T, d doctor.Deps, check string, level doctor.Level, says, fix string) {
	t.Helper()
	var seen []string
	for _, f := range doctor.Run(t.Context(), d) {
		if f.Check != check {
			continue
		}
		if f.Level == level && strings.Contains(f.Says, says) && strings.Contains(f.Fix, fix) && (fix != "" || f.Fix == "") {
			return
		}
		seen = append(seen, fmt.Sprintf("%+v", f))
	}
	t.Errorf("%s: got %s, want %s that says %q and fixes with %q", check, strings.Join(seen, "\n"), level, says, fix)
}

func TestBusThatIsNotThere(t *testing.T) {
	t.Parallel()
	d := deps()
	d.Connect = func(context.Context) (*nats.Conn, error) {
		return nats.Connect("nats://127.0.0.1:1", nats.Timeout(time.Second))
	}
	expect(t, d, "bus", doctor.Fail, "no servers", "weir up --detach")
	expect(t, d, "streams", doctor.Skip, "needs the bus", "")
	expect(t, d, "services", doctor.Skip, "needs the bus", "")
}

func TestBusWithoutJetStream(t *testing.T) {
	t.Parallel()
	server, connect := testkit.NATS(t)
	if err := server.GlobalAccount().DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	d := deps()
	d.Connect = func(context.Context) (*nats.Conn, error) { return connect(), nil }

	expect(t, d, "bus", doctor.Fail, "no JetStream", "nats-server --jetstream")
	expect(t, d, "streams", doctor.Skip, "needs JetStream", "")
}

func TestBusAndItsServices(t *testing.T) {
	t.Parallel()
	_, connect := testkit.NATS(t)
	nc := connect()
	d := deps()
	d.Connect = func(context.Context) (*nats.Conn, error) { return nc, nil }
	expect(t, d, "bus", doctor.OK, "round trip", "")
	expect(t, d, "streams", doctor.Fail, "stream WEIR_DOCS is missing", "weir migrate")
	expect(t, d, "services", doctor.Fail, "ingester, embedder, indexer, retriever", "weir up --only ingester,embedder,indexer,retriever")

	testweir.Start(t, nc)
	expect(t, d, "streams", doctor.OK, "up to date, 0 messages", "")
	expect(t, d, "services", doctor.OK, "ingester 1, embedder 1, indexer 1, retriever 1", "")

	js := testkit.JetStream(t, nc)
	if err := js.DeleteConsumer(t.Context(), messages.StreamParse, "weir-parse-3"); err != nil {
		t.Fatal(err)
	}
	expect(t, d, "streams", doctor.Fail, "weir-parse-3 of stream WEIR_PARSE is missing", "weir migrate")
}

func TestStreamThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	_, connect := testkit.NATS(t)
	nc := connect()
	js := testkit.JetStream(t, nc)
	_, err := bus.Provision(t.Context(), js, messages.Streams(), messages.Stages(), bus.Settings{MemoryStorage: true, MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), messages.WorkSubject(messages.StageParse, "default", "books"), make([]byte, 1700)); err != nil {
		t.Fatal(err)
	}
	d := deps()
	d.Connect = func(context.Context) (*nats.Conn, error) { return nc, nil }
	expect(t, d, "streams", doctor.Warn, "stream WEIR_PARSE is 8", "every service runs")
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	expect(t, deps(), "database", doctor.Fail, "not there", "DATABASE_URL")
	expect(t, deps(), "schema", doctor.Skip, "needs the database", "")
	expect(t, deps(), "stuck documents", doctor.Skip, "needs the database", "")
}

func TestDatabaseBeforeMigration(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.EmptyPostgresURL(t))
	expect(t, c.deps, "database", doctor.OK, "Postgres ", "")
	expect(t, c.deps, "extension", doctor.Fail, "vector is missing in this database", "CREATE EXTENSION vector")
	expect(t, c.deps, "schema", doctor.Fail, "older than this program", "weir migrate")
	expect(t, c.deps, "indexes", doctor.Skip, "needs the present schema", "")
}

func TestDatabaseInHealth(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.document(t, "a", "Indexing", time.Minute) // busy, not stuck
	c.document(t, "b", "Ready", time.Hour)
	for check, says := range map[string]string{
		"database": "Postgres", "extension": "pgvector 0.", "schema": "up to date", "stuck documents": "10m0s",
		"dead letters": "none open", "partitions": "1 attached", "indexes": "all there", "analyzers": "all with lex1", "jobs": "none waits",
	} {
		expect(t, c.deps, check, doctor.OK, says, "")
	}
}

func TestDocumentsThatStandStill(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.document(t, "old one's", "Indexing", 20*time.Minute)
	c.document(t, "newer", "Pending", 11*time.Minute)
	expect(t, c.deps, "stuck documents", doctor.Warn, "2 documents have made no progress for more than 10m0s: old one's in books (Indexing for 00:20:0",
		`weir docs get --kb books 'old one'\''s'`)
}

func TestDeadLettersThatAreOpen(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	for i, state := range []string{"open", "open", "discarded"} {
		c.exec(t, `INSERT INTO dead_letters (source, tenant, kb, stage, error, attempts, subject, headers, body, state)
			VALUES ($1, 'default', 'books', 'parse', '{"code":"NO_TEXT"}', 1, 's', '{}', '', $2)`, fmt.Sprint(i), state)
	}
	expect(t, c.deps, "dead letters", doctor.Warn, "2 open: 2 of stage parse with NO_TEXT", "weir dlq get 2")
}

func TestPartitionThatIsLost(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.exec(t, `ALTER TABLE chunks DETACH PARTITION chunks_g1`)
	expect(t, c.deps, "partitions", doctor.Fail, "default/books has lost the chunks of generation 1", "weir kb delete books --yes")
}

func TestIndexesThatAreMissingOrInvalid(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.exec(t, `DROP INDEX documents_open`)
	c.exec(t, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'document_receipts_age'::regclass`)
	expect(t, c.deps, "indexes", doctor.Fail, "index documents_open is missing",
		`psql "$DATABASE_URL" -c 'CREATE INDEX documents_open ON documents (key) WHERE status IN ('\''Pending`)
	expect(t, c.deps, "indexes", doctor.Warn, "document_receipts_age is not valid", "REINDEX INDEX CONCURRENTLY document_receipts_age")
}

func TestKnowledgeBasesOfAStaleAnalyzer(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.exec(t, `UPDATE generations SET fingerprint = 'of another program'`)
	expect(t, c.deps, "analyzers", doctor.Warn, "default/books: its terms were made by another lex1", "weir reindex --kb books --analyzer lex1")
	c.exec(t, `UPDATE generations SET analyzer = 'lex0'`)
	c.exec(t, `UPDATE knowledge_bases SET tenant = 'acme'`)
	expect(t, c.deps, "analyzers", doctor.Warn, "lex0 is not known to this program", "weir reindex --kb books --analyzer lex1 --tenant acme")
}

func TestIndexesOfGenerationsThatLackSomething(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.document(t, "a", "Ready", time.Minute)
	expect(t, c.deps, "generations", doctor.OK, "every document", "")
	c.exec(t, `UPDATE documents SET live_version = 1`)
	expect(t, c.deps, "generations", doctor.Fail, "1 documents that are said to be Ready have no chunks", "weir jobs start repair --kb books --stale")
	c.exec(t, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_g1_hash_idx'::regclass`)
	expect(t, c.deps, "generations", doctor.Warn, "generation 1 has no valid index like chunks_hash", "weir reindex --kb books")
}

func TestJobsThatWait(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	c.exec(t, `INSERT INTO jobs (tenant, kb, kb_id, kind, state, reason, source, target, config, retain_seconds)
		VALUES ('default', 'books', 1, 'reindex', 'waiting', 'approve or cancel', 1, 1, '{}', 0)`)
	expect(t, c.deps, "jobs", doctor.Warn, "job 1 of knowledge base default/books waits: approve or cancel", "weir jobs get 1")
}

func TestEmbeddingServer(t *testing.T) {
	t.Parallel()
	fake := fakeserver.New(fakeserver.Options{Dims: 8})
	server := httptest.NewServer(fake)
	defer server.Close()
	d := deps()
	expect(t, d, "embedding", doctor.Skip, "EMBEDDING_BASE_URL", "")
	d.Embedding = doctor.Embedding{BaseURL: service.SecretURL(strings.Replace(server.URL, "://", "://u:hunter2@", 1) + "/v1"), Model: "m"}
	expect(t, d, "embedding", doctor.OK, "//redacted@127.0.0.1", "")
	expect(t, d, "embedding", doctor.OK, "model m, 8 dimensions", "")
	fake.Always(&fakeserver.Fault{Status: 401, Message: "no key"})
	expect(t, d, "embedding", doctor.Fail, "//redacted@127.0.0.1", "EMBEDDING_API_KEY")
	expect(t, d, "embedding", doctor.Fail, "does not embed", "EMBEDDING_API_KEY")
	server.Close()
	expect(t, d, "embedding", doctor.Fail, "does not embed", "weir status")
}

func TestRerankModels(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"results":[{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":0.1}]}`))
	}))
	defer server.Close()
	d := deps()
	const check = "rerank models"
	expect(t, d, check, doctor.Skip, "WEIR_RERANK_PROVIDERS", "")
	set := func(text string) {
		var list service.RerankProviders
		err := list.Set(text)
		d.Rerank = func() (service.RerankProviders, error) { return list, err }
	}
	set(`[]`)
	expect(t, d, check, doctor.Skip, "WEIR_RERANK_PROVIDERS", "")
	set(`[{`)
	expect(t, d, check, doctor.Fail, "the setting is wrong", "docs/configuration.md")
	set(`[{"name":"a b","url":"http://x/rerank"}]`)
	expect(t, d, check, doctor.Fail, "name", "docs/configuration.md")
	set(`[{"name":"good","url":"` + server.URL + `/rerank","models":["small","large"],"apiKey":"right"},{"name":"bad","url":"` + server.URL + `/rerank","models":["small"],"apiKey":"wrong-key"}]`)
	expect(t, d, check, doctor.OK, "good, 2 models", "")
	expect(t, d, check, doctor.Fail, "bad does not rerank: model small", "key")
	for _, f := range doctor.Run(t.Context(), d) {
		if strings.Contains(f.Says+f.Fix, "wrong-key") {
			t.Errorf("%s tells the key: %s", f.Check, f.Says)
		}
	}
	server.Close()
	expect(t, d, check, doctor.Fail, "good does not rerank", "server runs")
}

func TestSpacesOfKnowledgeBases(t *testing.T) {
	t.Parallel()
	c := withDatabase(t, testkit.PostgresURL(t))
	c.kb(t)
	_, connect := testkit.NATS(t)
	nc := connect()
	c.deps.Connect = func(context.Context) (*nats.Conn, error) { return nc, nil }
	const check = "embedding of knowledge bases"
	expect(t, c.deps, check, doctor.Fail, "model m with 8 dimensions (knowledge bases default/books) cannot be embedded", "weir up --only embedder")

	var answer func() (any, error)
	svc, err := bus.NewService(nc, bus.ServiceInfo{Name: "weir-embedder", Version: "1.0.0"}, bus.ServiceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := svc.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	err = svc.AddEndpoint(bus.Endpoint{Name: "embed", Subject: messages.SubjectEmbed, Handler: func(context.Context, bus.Request) (any, error) { return answer() }})
	if err != nil {
		t.Fatal(err)
	}
	answer = func() (any, error) { return messages.EmbedReply{Vectors: [][]byte{make([]byte, 32)}}, nil }
	expect(t, c.deps, check, doctor.OK, "1 spaces", "")
	answer = func() (any, error) { return messages.EmbedReply{Vectors: [][]byte{make([]byte, 16)}}, nil }
	expect(t, c.deps, check, doctor.Fail, "another length", "update the embedder")
	answer = func() (any, error) { return nil, messages.Errorf(messages.CodeDimensionMismatch, "got 4") }
	expect(t, c.deps, check, doctor.Fail, "other dimensions: got 4", "create a new knowledge base")
}

func TestEveryCheckIsMade(t *testing.T) {
	t.Parallel()
	var made []string
	for _, f := range doctor.Run(t.Context(), deps()) {
		made = append(made, f.Check)
	}
	if !slices.Equal(made, doctor.Names()) {
		t.Errorf("got %q, want each of %q once", made, doctor.Names())
	}
}
