package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

const (
	tenant = "acme"
	kb     = "docs"
	model  = "fake-model"
	dims   = 16

	// ackWait is how soon work of a killed process is handed out again.
	ackWait = 2 * time.Second
	// embedLatency stretches the run, so that kills meet work on its way.
	embedLatency = 60 * time.Millisecond
)

// build builds the services and returns the directory they are in; WEIR_CHAOS_BIN names one with programs
// that are to be used as they are.
func build(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("WEIR_CHAOS_BIN"); dir != "" {
		return dir
	}
	started, dir := time.Now(), t.TempDir()
	args := []string{"build", "-trimpath", "-o", dir + "/"}
	for _, name := range services() {
		args = append(args, "github.com/weir-project/weir/services/"+name+"/cmd/"+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the services: %v: %s", err, out)
	}
	t.Logf("built after %s", time.Since(started).Round(time.Millisecond))
	return dir
}

func services() []string { return []string{"ingester", "embedder", "indexer", "retriever"} }

// part is what can be killed and started again.
type part interface {
	kill()
	start()
	fault() error
}

var (
	_ part = (*process)(nil)
	_ part = (*postgres)(nil)
)

// world is one installation: every part a process of its own.
type world struct {
	t     *testing.T
	parts map[string]part
	fake  *fakeserver.Server
	nc    *nats.Conn
	js    jetstream.JetStream
	pool  *pgxpool.Pool

	redelivered map[string]int // by stage, at least so many
}

// newWorld starts an installation of the programs in bin, on a database of its own.
func newWorld(t *testing.T, bin string, pg *postgres, database string) *world {
	t.Helper()
	databaseURL := pg.database(database)
	w := &world{t: t, parts: map[string]part{"postgres": pg}, fake: fakeserver.New(fakeserver.Options{Dims: dims, Latency: embedLatency}), redelivered: map[string]int{}}
	provider := httptest.NewServer(w.fake)
	t.Cleanup(provider.Close)
	dir := t.TempDir()
	natsURL := w.startNATS(dir)
	w.connect(natsURL, databaseURL)
	w.provision()
	shared := []string{"--nats-url", natsURL, "--connect-wait", "2m"}
	stored := []string{"--database-url", databaseURL}
	flags := map[string][]string{
		"ingester":  stored,
		"embedder":  {"--embedding-base-url", provider.URL + "/v1", "--embedding-model", model, "--embedding-dims", fmt.Sprint(dims)},
		"indexer":   append(stored, "--default-model", model, "--default-dims", fmt.Sprint(dims), "--reconcile-every", "500ms", "--reconcile-grace", "2s", "--job-lease", "2s"),
		"retriever": stored,
	}
	for _, name := range services() {
		p := newProcess(t, dir, name, nil, slices.Concat([]string{filepath.Join(bin, name)}, shared, flags[name])...)
		w.parts[name] = p
		p.start()
		t.Cleanup(p.stop)
	}
	w.createKB()
	return w
}

func (w *world) startNATS(dir string) string {
	w.t.Helper()
	port, err := statedir.FreePort()
	if err != nil {
		w.t.Fatal(err)
	}
	p := newProcess(w.t, dir, "nats", []string{natsDirEnv + "=" + filepath.Join(dir, "nats"), fmt.Sprintf("%s=%d", natsPortEnv, port)}, testBinary(w.t))
	w.parts["nats"] = p
	p.start()
	w.t.Cleanup(p.stop)
	return fmt.Sprintf("nats://127.0.0.1:%d", port)
}

func (w *world) connect(natsURL, databaseURL string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), testkit.Patience)
	defer cancel()
	var err error
	if w.nc, err = service.OpenNATS(ctx, service.NATSConfig{URL: service.SecretURL(natsURL), Name: "chaos", Wait: testkit.Patience}, slog.New(slog.DiscardHandler)); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		closed := w.nc.StatusChanged(nats.CLOSED)
		w.nc.Close()
		<-closed
	})
	w.js = testkit.JetStream(w.t, w.nc)
	w.pool = testkit.Pool(w.t, databaseURL, pgstore.Configure)
}

func (w *world) provision() {
	w.t.Helper()
	_, err := bus.Provision(w.t.Context(), w.js, messages.Streams(), messages.Stages(), bus.Settings{AckWait: ackWait})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createKB() {
	w.t.Helper()
	testkit.Eventually(w.t, func() error {
		if err := w.healthy(); err != nil {
			w.t.Fatal(err)
		}
		_, err := call[messages.KBInfo](w, messages.TenantScope, messages.OpKBCreate, messages.CreateKB{KnowledgeBaseName: kb})
		if e, ok := messages.AsError(err); ok && e.Code == messages.CodeAlreadyExists {
			return nil
		}
		return err
	})
}

// call makes a request and decodes its data.
func call[T any](w *world, scope, op string, in any) (T, error) {
	var out T
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	err := bus.Call(ctx, w.nc, messages.RPCSubject(tenant, scope, op), nil, in, &out)
	return out, err
}

// healthy reports parts that ended by themselves: whatever else dies, they are to wait for it.
func (w *world) healthy() error {
	var problems []error
	for _, p := range w.parts {
		problems = append(problems, p.fault())
	}
	return errors.Join(problems...)
}

// send publishes messages until the bus has them.
func (w *world) send(list []submit) {
	w.t.Helper()
	for _, m := range list {
		testkit.Eventually(w.t, func() error {
			ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
			defer cancel()
			_, err := w.js.PublishMsg(ctx, &nats.Msg{Subject: m.subject, Data: m.body}, jetstream.WithMsgID(m.id))
			return err
		})
	}
}

// until waits until a query that counts what is wrong counts nothing.
func (w *world) until(what, wrong string, args ...any) {
	w.t.Helper()
	started := time.Now()
	testkit.Eventually(w.t, func() error {
		if err := w.healthy(); err != nil {
			w.t.Fatal(err)
		}
		w.lookForRedeliveries()
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		defer cancel()
		var n int
		if err := w.pool.QueryRow(ctx, wrong, args...).Scan(&n); err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("%s: %d are not", what, n)
		}
		return nil
	})
	w.t.Logf("%s after %s", what, time.Since(started).Round(time.Millisecond))
}

// untilAccepted waits until every document has come to a version.
func (w *world) untilAccepted(what string, versions map[string]int64) {
	w.t.Helper()
	var ids []string
	var wanted []int64
	for id, v := range versions {
		ids, wanted = append(ids, id), append(wanted, v)
	}
	w.until(what+" accepted", `SELECT count(*) FROM unnest($1::text[], $2::bigint[]) w(id, version)
		LEFT JOIN documents d ON d.doc_id = w.id WHERE coalesce(d.version, 0) < w.version`, ids, wanted)
}

// untilReady waits until every document is Ready and nothing is staged.
func (w *world) untilReady() {
	w.t.Helper()
	w.until("every document Ready", `SELECT $1 - count(*) FILTER (WHERE status = 'Ready') FROM documents`, documents)
	w.until("nothing staged", `SELECT (SELECT count(*) FROM staged_chunks) + (SELECT count(*) FROM staged_vectors)`)
}

// lookForRedeliveries notes how many messages were handed out again: those that are out now, or, since the
// streams hold one knowledge base's messages only, by how much the deliveries exceed the messages. It is no
// fault when the bus does not answer: it may have been killed.
func (w *world) lookForRedeliveries() {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	for _, st := range messages.Stages() {
		info, err := w.consumer(ctx, st)
		if err != nil {
			continue
		}
		w.redelivered[st.Name] = max(w.redelivered[st.Name], info.NumRedelivered, excess(info))
	}
}

// excess is by how much the deliveries of a stage exceed its messages. It grows with every message that is handed out
// again; a NATS that was killed may begin below 0, as its consumers do not know of all that is gone from the stream.
func excess(info *jetstream.ConsumerInfo) int {
	return int(info.Delivered.Consumer) - int(info.Delivered.Stream) //nolint:gosec // a few thousand
}

// consumer is the state of a stage, in the lane of the knowledge base.
func (w *world) consumer(ctx context.Context, st messages.Stage) (*jetstream.ConsumerInfo, error) {
	lane := 0
	if st.Lanes > 1 {
		lane = messages.Lane(tenant, kb)
	}
	c, err := w.js.Consumer(ctx, st.Stream, st.Durable(lane))
	if err != nil {
		return nil, err
	}
	return c.CachedInfo(), nil
}

// terminal returns the terminal events of every submit and delete, by message id.
func (w *world) terminal() map[string][]messages.DocumentStatus {
	w.t.Helper()
	out := map[string][]messages.DocumentStatus{}
	for _, e := range w.events() {
		if e.Status.Terminal() {
			out[e.SubmitID] = append(out[e.SubmitID], e.Status)
		}
	}
	return out
}

// checkEvents fails unless each of the messages has exactly one terminal event.
func (w *world) checkEvents(sent ...[]submit) {
	w.t.Helper()
	var problems []string
	testkit.Eventually(w.t, func() error {
		events := w.terminal()
		missing := 0
		problems = nil
		for _, list := range sent {
			for _, m := range list {
				switch n := len(events[m.id]); {
				case n == 0:
					missing++
				case n > 1:
					problems = append(problems, fmt.Sprintf("%s: %v", m.id, events[m.id]))
				}
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d messages have no terminal event", missing)
		}
		return nil
	})
	if len(problems) > 0 {
		w.t.Errorf("messages with more than one terminal event:\n%s", strings.Join(problems, "\n"))
	}
}
