package ingester_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	"github.com/weir-project/weir/services/ingester/internal/intake"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func TestMain(m *testing.M) {
	parseworker.Main()
	goleak.VerifyTestMain(m, testkit.UploadLeak())
}

const (
	tenant   = "acme"
	maxBytes = 1 << 20
)

// lab is a database of its own with a knowledge base, and intake over it.
type lab struct {
	t      *testing.T
	pool   *pgxpool.Pool
	store  *pgstore.Store
	intake *intake.Intake
	seq    uint64
}

func newLab(t *testing.T, uploads intake.Uploads) *lab {
	t.Helper()
	t.Parallel()
	pool := testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure)
	l := &lab{t: t, pool: pool, store: pgstore.New(pool)}
	l.intake = intake.New(l.store, uploads, testkit.Logger(t), maxBytes)
	l.createKB("docs", nil)
	return l
}

func (l *lab) createKB(name string, change func(*pgstore.NewKB)) pgstore.KB {
	l.t.Helper()
	n := pgstore.NewKB{
		Tenant: tenant, Name: name, IndexType: messages.IndexTypeHybrid,
		Schema: messages.MetadataSchema{{Name: "year", Type: messages.TypeLong}},
		Generation: pgstore.Generation{
			Parser: "p1", Chunking: messages.Chunking{}.WithDefaults(), Analyzer: lexical.Default,
			Space: &messages.Space{Model: "fake", Dims: 4, Metric: "cosine", Normalized: true, PassagePrefix: "passage: "},
		},
	}
	if change != nil {
		change(&n)
	}
	kb, err := l.store.CreateKB(l.t.Context(), n)
	if err != nil {
		l.t.Fatal(err)
	}
	return kb
}

func (l *lab) kb(name string) pgstore.KB {
	l.t.Helper()
	kb, err := l.store.LoadKB(l.t.Context(), tenant, name)
	if err != nil {
		l.t.Fatal(err)
	}
	return kb
}

// from is a submit or delete as the stream hands it over, each later than the one before.
func (l *lab) from(body string, header map[string]string) intake.From {
	l.seq++
	return intake.From{
		Tenant: tenant, KB: "docs", Source: fmt.Sprintf("js/1/%d", l.seq), SubmitID: fmt.Sprintf("m%d", l.seq),
		Order:  pgstore.Order{At: time.Unix(1_700_000_000, int64(l.seq)), Seq: l.seq}, //nolint:gosec // small
		Header: func(name string) string { return header[name] }, Body: []byte(body),
	}
}

// submit takes a JSON submit in.
func (l *lab) submit(body string) intake.Verdict {
	l.t.Helper()
	v, err := l.intake.Submit(l.t.Context(), l.from(body, nil))
	if err != nil {
		l.t.Fatal(err)
	}
	return v
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

// told is what messages say: the status and submit of an event, the stage of work.
func told(t *testing.T, msgs []bus.Message) []string {
	t.Helper()
	out := make([]string, len(msgs))
	for i, m := range msgs {
		if m.Header[messages.HeaderMsgType] != messages.TypeEvent {
			out[i] = messages.StageOfMsgID(m.ID)
			continue
		}
		var e messages.Event
		if err := json.Unmarshal(m.Body, &e); err != nil {
			t.Fatal(err)
		}
		out[i] = fmt.Sprintf("%s v%d %s", e.Status, e.Version, e.SubmitID)
		if e.Unchanged {
			out[i] += " unchanged"
		}
	}
	return out
}

// names is what makes a message that one and no other.
func names(msgs []bus.Message) []string {
	out := make([]string, len(msgs))
	for i, m := range msgs {
		out[i] = m.Subject + " " + m.ID
	}
	return out
}

func wantTold(t *testing.T, what string, msgs []bus.Message, want ...string) {
	t.Helper()
	if got := told(t, msgs); !slices.Equal(got, want) {
		t.Errorf("%s: got [%s], want [%s]", what, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

// wantError fails unless err is a permanent error of this code and field.
func wantError(t *testing.T, what string, err error, code messages.Code, field string) {
	t.Helper()
	e, ok := messages.AsError(err)
	if !ok || e.Code != code || e.Field != field {
		t.Errorf("%s: got %v, want %s of %q", what, err, code, field)
	}
}

// publisher remembers what it was given.
type publisher struct {
	mu   sync.Mutex
	sent []bus.Message // read it when nobody publishes any more
}

func (p *publisher) PublishAck(_ context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, msgs...)
	return make([]bus.Ack, len(msgs)), nil
}
