package retriever_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/retriever"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a running retriever on a database of its own, with a stand-in for the embedder.
type lab struct {
	tb     testing.TB
	store  *pgstore.Store
	pool   *pgxpool.Pool
	nc     *nats.Conn // the client's
	embed  atomic.Value
	embeds atomic.Int64
	log    *logBuffer
	seq    uint64
	rpc    *bus.Service // the stand-in
	dims   int
	// vectors are those of chunks that need certain ones.
	vectors map[string][]float32
	// metadata is that of documents that need a certain one.
	metadata map[string]string
}

// setup is what a test wants different.
type setup struct {
	cfg        retriever.Config
	dims       int // 0: 8
	noEmbedder bool
	address    func(url string) string // where the service finds the database
}

func newLab(tb testing.TB, s setup) *lab {
	tb.Helper()
	_, connect := testkit.NATS(tb)
	url := testkit.PostgresURL(tb)
	l := &lab{tb: tb, nc: connect(), log: &logBuffer{}, dims: 8}
	if s.dims > 0 {
		l.dims = s.dims
	}
	l.pool = testkit.Pool(tb, url, pgstore.Configure)
	l.store = pgstore.New(l.pool)
	l.embed.Store(func(text string) ([]float32, error) { return vectorOf(text, l.dims), nil })
	if !s.noEmbedder {
		l.serveVectors(connect())
	}
	served := l.store
	if s.address != nil {
		served = pgstore.New(testkit.Pool(tb, s.address(url), pgstore.Configure))
	}
	ready := make(chan struct{})
	svc, err := retriever.New(s.cfg, retriever.Deps{
		NC: connect(), Store: served, Ready: func() { close(ready) },
		Logger: slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- svc.Run(ctx)
	}()
	tb.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			tb.Errorf("run: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		tb.Fatalf("run: %v", err)
	}
	return l
}

// serveVectors answers as the embedder would.
func (l *lab) serveVectors(nc *nats.Conn) {
	l.tb.Helper()
	var err error
	if l.rpc, err = bus.NewService(nc, bus.ServiceInfo{Name: "embedder", Version: "1.0.0"}, bus.ServiceOptions{}); err != nil {
		l.tb.Fatal(err)
	}
	err = l.rpc.AddEndpoint(bus.Endpoint{Name: "embed", Subject: messages.SubjectEmbed, Handler: func(_ context.Context, r bus.Request) (any, error) {
		var in messages.EmbedRequest
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return nil, err
		}
		l.embeds.Add(1)
		embed, _ := l.embed.Load().(func(string) ([]float32, error))
		var out messages.EmbedReply
		for _, text := range in.Texts {
			v, err := embed(text)
			if err != nil {
				return nil, err
			}
			out.Vectors = append(out.Vectors, encode(v))
		}
		return out, nil
	}})
	if err != nil {
		l.tb.Fatal(err)
	}
	l.tb.Cleanup(func() {
		if err := l.rpc.Stop(context.Background()); err != nil {
			l.tb.Errorf("stop embedder: %v", err)
		}
	})
}

func encode(v []float32) []byte {
	var out []byte
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// vectorOf gives texts with common words similar vectors.
func vectorOf(text string, dims int) []float32 {
	v := make([]float32, dims)
	v[0] = 0.25
	for _, w := range strings.Fields(text) {
		h := fnv.New64a()
		h.Write([]byte(w))
		sum := h.Sum64()
		for i := range v {
			v[i] += float32(int8(sum>>(8*(i%8)))) / 128 * float32(1+i/8%7) //nolint:gosec // any bits will do
		}
	}
	return v
}

func (l *lab) vectorOf(chunk string, dims int) []float32 {
	if v, ok := l.vectors[chunk]; ok {
		return v
	}
	return vectorOf(chunk, dims)
}

// kb creates a knowledge base; change may alter it.
func (l *lab) kb(name string, change func(*pgstore.NewKB)) pgstore.KB {
	l.tb.Helper()
	n := pgstore.NewKB{
		Tenant: "acme", Name: name, IndexType: messages.IndexTypeHybrid,
		Schema: messages.MetadataSchema{{Name: "of", Type: messages.TypeString}, {Name: "owner", Type: messages.TypeString, Internal: true}},
		Generation: pgstore.Generation{
			Parser: "p1", Analyzer: lexical.Default,
			Space: &messages.Space{Model: "fake", Dims: l.dims, Metric: "cosine"},
		},
	}
	if change != nil {
		change(&n)
	}
	kb, err := l.store.CreateKB(l.tb.Context(), n)
	if err != nil {
		l.tb.Fatal(err)
	}
	return kb
}

// put makes a document of these chunks live.
func (l *lab) put(kb pgstore.KB, subspace, doc string, chunks ...string) {
	l.tb.Helper()
	ctx := l.tb.Context()
	a, err := l.store.AcceptSubmit(ctx, l.submission(kb, subspace, doc, chunks))
	if err != nil || a.Outcome != pgstore.Accepted {
		l.tb.Fatalf("accept %s: %v, %v", doc, a.Outcome, err)
	}
	ref := messages.Ref{
		Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Generation: kb.Generation.ID, Subspace: subspace, DocID: doc, DocKey: a.DocKey, Version: a.Version,
	}
	if _, err := l.store.BeginParse(ctx, ref); err != nil {
		l.tb.Fatal(err)
	}
	st, vectors := l.staging(kb, ref, chunks)
	if _, err := l.store.Stage(ctx, st); err != nil {
		l.tb.Fatal(err)
	}
	if err := l.store.StageVectors(ctx, ref, vectors); err != nil {
		l.tb.Fatal(err)
	}
	res, err := l.store.SwapVersions(ctx, kb.Generation.ID, []pgstore.Finished{{Candidate: pgstore.Candidate{DocKey: a.DocKey, Version: a.Version}}})
	if err != nil || len(res.Swapped) != 1 {
		l.tb.Fatalf("swap %s: %+v, %v", doc, res, err)
	}
}

func (l *lab) submission(kb pgstore.KB, subspace, doc string, chunks []string) pgstore.Submission {
	l.seq++
	text := strings.Join(chunks, "\n")
	metadata, ok := l.metadata[doc]
	if !ok {
		metadata = `{"of":"` + doc + `","owner":"secret"}`
	}
	return pgstore.Submission{
		KB: kb, Subspace: subspace, DocID: doc, Source: fmt.Sprintf("s%d", l.seq), SubmitID: fmt.Sprintf("m%d", l.seq),
		Order: l.order(),
		Title: "Title of " + doc, OSSKey: "oss/" + doc, ContentType: "text/plain",
		Metadata: json.RawMessage(metadata),
		Blob:     pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
	}
}

func (l *lab) order() pgstore.Order {
	return pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq} //nolint:gosec // small
}

func (l *lab) setActive(kb pgstore.KB, doc string, chunk int, status messages.ChunkStatus) {
	l.tb.Helper()
	if err := l.store.SetChunkStatus(l.tb.Context(), kb.ID, messages.DefaultSubspace, doc, chunk, status, nil); err != nil {
		l.tb.Fatal(err)
	}
}

func (l *lab) staging(kb pgstore.KB, ref messages.Ref, chunks []string) (pgstore.Staging, []pgstore.Vector) {
	l.tb.Helper()
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		l.tb.Fatal(err)
	}
	st := pgstore.Staging{Ref: ref, Space: kb.Generation.Space}
	var vectors []pgstore.Vector
	for i, c := range chunks {
		d := an.Document("", c)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: c, PageFrom: i + 1, PageTo: i + 2, HeadingPath: []string{"Part", ref.DocID},
			Hash: sha256.Sum256([]byte(c)), Lex: pgstore.NewTSVector(d), LexLen: d.Length,
		})
		if kb.Generation.Space != nil {
			vectors = append(vectors, pgstore.Vector{Ordinal: i, Values: l.vectorOf(c, kb.Generation.Space.Dims)})
		}
	}
	return st, vectors
}

// fill makes n documents of one chunk each, some about pumps.
func (l *lab) fill(kb pgstore.KB, n int) {
	l.tb.Helper()
	for i := range n {
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%02d", i), fmt.Sprintf("pump number%d with seal%d", i, i%3))
	}
}

// call makes a request of a knowledge base; body is JSON.
func (l *lab) call(kb, op, body string, out any) error {
	return bus.Client{NC: l.nc, RetryFor: testkit.Patience, Timeout: testkit.Patience}.Call(l.tb.Context(), messages.RPCSubject("acme", kb, op), nil, []byte(body), out)
}

// retrieve makes a request that must succeed.
func (l *lab) retrieve(kb, body string) messages.RetrieveReply {
	l.tb.Helper()
	var out messages.RetrieveReply
	if err := l.call(kb, messages.OpRetrieve, body, &out); err != nil {
		l.tb.Fatalf("retrieve %s: %v", body, err)
	}
	return out
}

// refused checks code and field of an error.
func refused(tb testing.TB, what string, err error, code messages.Code, field string) {
	tb.Helper()
	var e *messages.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		tb.Errorf("%s: got %v, want %s of %q", what, err, code, field)
	}
}

// ask is a request for a text with a configuration.
func ask(text, configuration string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	if configuration == "" {
		configuration = "null"
	}
	return fmt.Sprintf(`{"retrievalQuery":{"type":"TEXT","text":%s},"retrievalConfiguration":%s,"explain":true}`, quoted, configuration)
}

func ids(r messages.RetrieveReply) []string {
	out := []string{}
	for _, c := range r.Results {
		out = append(out, fmt.Sprintf("%s/%s#%d", c.Subspace, c.DocID, c.ChunkID))
	}
	return out
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
