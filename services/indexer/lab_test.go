package indexer_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant = "acme"
	dims   = 4
)

// lab is a database of its own with a knowledge base, driven through the store's own door.
type lab struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *pgstore.Store
	kb    pgstore.KB
	seq   uint64
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure)
	l := &lab{t: t, pool: pool, store: pgstore.New(pool)}
	l.kb = l.createKB("docs")
	return l
}

func (l *lab) createKB(name string) pgstore.KB {
	l.t.Helper()
	kb, err := l.store.CreateKB(l.t.Context(), pgstore.NewKB{
		Tenant: tenant, Name: name, IndexType: messages.IndexTypeHybrid,
		Generation: pgstore.Generation{
			Parser: "p1", Chunking: messages.Chunking{Strategy: messages.ChunkTokens, Size: 400}, Analyzer: lexical.Default,
			Space: &messages.Space{Model: "fake", Dims: dims, Metric: "cosine", Normalized: true},
		},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return kb
}

// newBus is a bus with everything provisioned.
func newBus(t *testing.T) (jetstream.JetStream, testkit.Connect) {
	t.Helper()
	_, connect := testkit.NATS(t)
	js := testkit.JetStream(t, connect())
	if _, err := bus.Provision(t.Context(), js, messages.Streams(), messages.Stages(), bus.Settings{}); err != nil {
		t.Fatal(err)
	}
	return js, connect
}

// submit has a document accepted and returns a reference to its version.
func (l *lab) submit(doc, text string) messages.Ref {
	l.t.Helper()
	l.seq++
	a, err := l.store.AcceptSubmit(l.t.Context(), pgstore.Submission{
		KB: l.kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("js/1/%d", l.seq), SubmitID: fmt.Sprintf("m%d", l.seq),
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq}, //nolint:gosec // small
		Title: "T", OSSKey: doc, ContentType: "text/plain", Metadata: json.RawMessage(`{}`),
		Blob: pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return messages.Ref{
		Tenant: l.kb.Tenant, KB: l.kb.Name, KBID: l.kb.ID, Generation: l.kb.Generation.ID,
		Subspace: messages.DefaultSubspace, DocID: doc, DocKey: a.DocKey, Version: a.Version,
	}
}

// stage parses and stages a version, one chunk a line.
func (l *lab) stage(ref messages.Ref, text string) {
	l.t.Helper()
	if _, err := l.store.BeginParse(l.t.Context(), ref); err != nil {
		l.t.Fatal(err)
	}
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		l.t.Fatal(err)
	}
	st := pgstore.Staging{Ref: ref, Space: l.kb.Generation.Space, Warnings: []string{"a warning"}}
	for i, line := range strings.Split(text, "\n") {
		d := an.Document("", line)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: line, Hash: sha256.Sum256([]byte(line)), Lex: pgstore.NewTSVector(d), LexLen: d.Length,
		})
	}
	if _, err := l.store.Stage(l.t.Context(), st); err != nil {
		l.t.Fatal(err)
	}
}

// staged is submit and stage.
func (l *lab) staged(doc, text string) messages.Ref {
	l.t.Helper()
	ref := l.submit(doc, text)
	l.stage(ref, text)
	return ref
}

func (l *lab) document(doc string) messages.DocumentInfo {
	l.t.Helper()
	d, err := l.store.GetDocument(l.t.Context(), l.kb.ID, messages.DefaultSubspace, doc, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *lab) count(sql string, args ...any) int {
	l.t.Helper()
	var n int
	if err := l.pool.QueryRow(l.t.Context(), sql, args...).Scan(&n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l *lab) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.pool.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatal(err)
	}
}

// vectorBytes is a vector as it travels.
func vectorBytes(values ...float32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// indexWork is a message of the index stage with the vectors of these ordinals.
func indexWork(ref messages.Ref, part, parts int, ordinals ...int) messages.IndexWork {
	w := messages.IndexWork{Ref: ref, Part: part, Parts: parts}
	for _, o := range ordinals {
		w.Vectors = append(w.Vectors, messages.IndexVector{Ordinal: o, Vector: vectorBytes(1, float32(o), 0, 0)})
	}
	return w
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := messages.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eventsOf reads the events among messages.
func eventsOf(t *testing.T, msgs []bus.Message) []messages.Event {
	t.Helper()
	out := make([]messages.Event, len(msgs))
	for i, m := range msgs {
		if err := json.Unmarshal(m.Body, &out[i]); err != nil || m.Header[messages.HeaderMsgType] != messages.TypeEvent {
			t.Fatalf("%s is no event: %v", m.Subject, err)
		}
	}
	return out
}

// wantError fails unless err is a permanent error of this code and field.
func wantError(t *testing.T, what string, err error, code messages.Code, field string) {
	t.Helper()
	e, ok := messages.AsError(err)
	if !ok || e.Code != code || e.Field != field {
		t.Errorf("%s: got %v, want %s of %q", what, err, code, field)
	}
}

// names is what makes a message that one and no other.
func names(msgs []bus.Message) []string {
	out := make([]string, len(msgs))
	for i, m := range msgs {
		out[i] = m.Subject + " " + m.ID
	}
	return out
}

// publisher remembers what it was given.
type publisher struct{ sent []bus.Message }

func (p *publisher) PublishAck(_ context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	p.sent = append(p.sent, msgs...)
	return make([]bus.Ack, len(msgs)), nil
}
