package deploytest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service/localpg"
	"github.com/weir-project/weir/pkg/service/migrate"
	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/retriever"
)

// TestRetrieverOnAReplica asks every operation of a retriever whose database is a streaming replica.
func TestRetrieverOnAReplica(t *testing.T) {
	primary := startPostgres(t, filepath.Join(testkit.PublicDir(t), "primary"))
	if _, err := migrate.Up(t.Context(), primary.URL(), migrations.FS(), testkit.Logger(t)); err != nil {
		t.Fatal(err)
	}
	fillPrimary(t, primary.URL())
	replica := startPostgres(t, copyOf(t, primary))
	var recovering bool
	queryRow(t, replica.URL(), "SELECT pg_is_in_recovery()", &recovering)
	if !recovering {
		t.Fatal("the copy is no replica")
	}
	client := retrieverOn(t, replica.URL())
	ask := func(kb, op string, in, out any) {
		t.Helper()
		if err := bus.Call(t.Context(), client, messages.RPCSubject("acme", kb, op), nil, in, out); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}

	var ready, indexing messages.DocumentInfo
	ask("docs", messages.OpDocGet, messages.DocumentRef{DocID: "ready"}, &ready)
	ask("docs", messages.OpDocGet, messages.DocumentRef{DocID: "indexing"}, &indexing)
	if ready.Status != messages.StatusReady || ready.Embedded != 2 {
		t.Errorf("ready: got %s with %d embedded, want Ready with 2", ready.Status, ready.Embedded)
	}
	if indexing.Status != messages.StatusIndexing || indexing.Chunks != 2 || indexing.Embedded != 0 {
		t.Errorf("indexing: got %+v, want Indexing, 2 chunks, embedded unknown", indexing)
	}
	var list messages.DocumentList
	ask("docs", messages.OpDocList, messages.ListDocuments{}, &list)
	if len(list.Documents) != 2 {
		t.Errorf("list: got %d documents, want 2", len(list.Documents))
	}
	var chunks messages.ChunkList
	ask("docs", messages.OpDocChunks, messages.ListChunks{DocID: "ready"}, &chunks)
	if len(chunks.Chunks) != 2 {
		t.Errorf("chunks: got %d, want 2", len(chunks.Chunks))
	}
	var kbs messages.KBList
	ask(messages.TenantScope, messages.OpKBList, messages.Page{}, &kbs)
	var kb messages.KBInfo
	ask("docs", messages.OpKBGet, messages.KBRef{}, &kb)
	if len(kbs.KnowledgeBases) != 1 || kb.Documents == nil || kb.Documents.Indexing != 1 {
		t.Errorf("knowledge bases: got %d, %+v, want one with one document Indexing", len(kbs.KnowledgeBases), kb.Documents)
	}
	var found messages.RetrieveReply
	ask("docs", messages.OpRetrieve, messages.RetrieveRequest{
		Query:         &messages.RetrievalQuery{Type: messages.QueryText, Text: "janitor"},
		Configuration: &messages.RetrievalConfiguration{SearchType: []messages.SearchType{messages.FullText}},
	}, &found)
	if len(found.Results) != 1 || found.Results[0].DocID != "ready" {
		t.Errorf("retrieve: got %+v, want the ready document", found.Results)
	}

	store := pgstore.New(testkit.Pool(t, primary.URL(), pgstore.Configure))
	base, err := store.LoadKB(t.Context(), "acme", "docs")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := store.GetDocument(t.Context(), base.ID, messages.DefaultSubspace, "indexing", nil); err != nil || d.Embedded != 1 {
		t.Errorf("on the primary: got %d embedded (%v), want 1", d.Embedded, err)
	}
	docs, err := store.ListDocuments(t.Context(), base.ID, pgstore.DocumentFilter{}, 10)
	if err != nil || len(docs) != 2 || docs[0].DocID != "indexing" || docs[0].Embedded != 1 || docs[1].Embedded != 2 {
		t.Errorf("list on the primary: got %+v (%v), want 1 and 2 embedded", docs, err)
	}
}

const postgresPassword = "s3cret"

func startPostgres(t *testing.T, dir string) *localpg.Cluster {
	t.Helper()
	port, err := statedir.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	c, err := localpg.Start(t.Context(), localpg.Config{
		Bin: testkit.PostgresPrograms(t), Dir: dir, Password: postgresPassword, Port: port, Logger: testkit.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// copyOf makes a standby of the primary in a directory of its own and returns that.
func copyOf(t *testing.T, primary *localpg.Cluster) string {
	t.Helper()
	dir := filepath.Join(testkit.PublicDir(t), "replica")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	from := url.URL{Scheme: "postgres", User: url.UserPassword(localpg.User, postgresPassword), Host: "127.0.0.1:" + strconv.Itoa(primary.Port())}
	cmd := exec.CommandContext(t.Context(), filepath.Join(testkit.PostgresPrograms(t), "pg_basebackup"),
		"--dbname", from.String(), "--pgdata", data, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	cmd.Env = []string{"LC_ALL=C", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	if os.Geteuid() == 0 { // Postgres runs as somebody else
		giveTo(t, data, primaryData(primary, t))
	}
	return dir
}

// primaryData is the directory that the primary says it works on.
func primaryData(primary *localpg.Cluster, t *testing.T) string {
	t.Helper()
	var dir string
	queryRow(t, primary.URL(), "SHOW data_directory", &dir)
	return dir
}

// giveTo makes the owner of like the owner of all below dir.
func giveTo(t *testing.T, dir, like string) {
	t.Helper()
	info, err := os.Stat(like)
	if err != nil {
		t.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%s has no owner", like)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func queryRow(t *testing.T, address, statement string, out any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), statement).Scan(out); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// fillPrimary leaves one document Ready and one Indexing with one of its two vectors.
func fillPrimary(t *testing.T, address string) {
	t.Helper()
	pool := testkit.Pool(t, address, pgstore.Configure)
	defer pool.Close()
	store := pgstore.New(pool)
	kb, err := store.CreateKB(t.Context(), pgstore.NewKB{
		Tenant: "acme", Name: "docs", IndexType: messages.IndexTypeHybrid,
		Generation: pgstore.Generation{
			Space:  &messages.Space{Model: model, Dims: dims, Metric: "cosine", Normalized: true},
			Parser: "p1", Chunking: messages.Chunking{}.WithDefaults(), Analyzer: lexical.Default,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ready := stageDocument(t, store, kb, "ready", 1, []string{"The janitor keeps the keys.", "The lift is old."}, 2)
	swapped, err := store.SwapVersions(t.Context(), kb.Generation.ID, []pgstore.Finished{{Candidate: pgstore.Candidate{DocKey: ready.DocKey, Version: ready.Version}}})
	if err != nil || len(swapped.Swapped) != 1 {
		t.Fatalf("swap: got %+v, %v", swapped, err)
	}
	stageDocument(t, store, kb, "indexing", 2, []string{"The fire drill is on Monday.", "It takes an hour."}, 1)
}

// stageDocument takes a document as far as Indexing with so many vectors.
func stageDocument(t *testing.T, store *pgstore.Store, kb pgstore.KB, id string, seq uint64, chunks []string, vectors int) messages.Ref {
	t.Helper()
	content := []byte(id)
	a, err := store.AcceptSubmit(t.Context(), pgstore.Submission{
		KB: kb, Subspace: messages.DefaultSubspace, DocID: id, Source: "js:" + id, SubmitID: id,
		Order: pgstore.Order{At: time.Unix(1_700_000_000, 0), Seq: seq}, OSSKey: id, ContentType: "text/plain", Metadata: json.RawMessage(`{}`),
		Blob: pgstore.Blob{SHA256: sha256.Sum256(content), SizeBytes: int64(len(content))}, Content: content,
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := messages.Ref{
		Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Generation: kb.Generation.ID,
		Subspace: messages.DefaultSubspace, DocID: id, DocKey: a.DocKey, Version: a.Version,
	}
	if _, err := store.BeginParse(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	analyzer, err := lexical.Lookup(lexical.Default)
	if err != nil {
		t.Fatal(err)
	}
	staging := pgstore.Staging{Ref: ref, Space: kb.Generation.Space}
	var values []pgstore.Vector
	for i, text := range chunks {
		doc := analyzer.Document("", text)
		staging.Chunks = append(staging.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: text, Hash: sha256.Sum256([]byte(text)), Lex: pgstore.NewTSVector(doc), LexLen: doc.Length,
		})
		vector := make([]float32, dims)
		vector[i] = 1
		values = append(values, pgstore.Vector{Ordinal: i, Values: vector})
	}
	if _, err := store.Stage(t.Context(), staging); err != nil {
		t.Fatal(err)
	}
	if err := store.StageVectors(t.Context(), ref, values[:vectors]); err != nil {
		t.Fatal(err)
	}
	return ref
}

// retrieverOn runs a retriever on the database and returns a client's connection.
func retrieverOn(t *testing.T, address string) *nats.Conn {
	t.Helper()
	_, connect := testkit.NATS(t)
	ready := make(chan struct{})
	svc, err := retriever.New(retriever.Config{}, retriever.Deps{
		NC: connect(), Store: pgstore.New(testkit.Pool(t, address, pgstore.Configure)), Logger: testkit.Logger(t), Ready: func() { close(ready) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("retriever: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(testkit.Patience):
		t.Fatal("the retriever does not become ready")
	}
	return connect()
}
