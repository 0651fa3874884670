package deploytest_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/cmd/weir/internal/cli"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// TestSampleOfUsersAndRoles runs the whole life of documents with the least rights the samples give, and what
// they must not give.
func TestSampleOfUsersAndRoles(t *testing.T) {
	s := startSite(t)
	globex := s.connect("globex", nil, nats.CustomInboxPrefix("_INBOX_globex"))
	publisher := s.connect("acme-publisher", nil, nats.CustomInboxPrefix("_INBOX_acme"))
	client := s.connect("acme-client", nil, nats.CustomInboxPrefix("_INBOX_acme"))
	operator := s.connect("operator", nil)

	for tenant, nc := range map[string]*nats.Conn{"acme": operator, "globex": globex} {
		create := messages.CreateKB{KnowledgeBaseName: "docs"}
		if err := bus.Call(t.Context(), nc, messages.RPCSubject(tenant, messages.TenantScope, messages.OpKBCreate), nil, create, nil); err != nil {
			t.Fatalf("create a knowledge base of %s: %v", tenant, err)
		}
	}
	t.Run("documents of each tenant become retrievable for it", func(t *testing.T) { s.documents(t, publisher, client, globex) })
	t.Run("an upload is taken up and removed", func(t *testing.T) { s.upload(t, operator, publisher) })
	t.Run("a refused submit is recorded and can be replayed", func(t *testing.T) { s.deadLetter(t, globex) })
	t.Run("jobs build a knowledge base anew", func(t *testing.T) { s.job(t, operator, publisher) })
	t.Run("the weir tool works for a tenant", func(t *testing.T) { s.tool(t) })
	t.Run("a tenant cannot reach another's", func(t *testing.T) { s.borders(t) })
	t.Run("roles of Postgres are bounds", func(t *testing.T) { s.roleBounds(t) })

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) > 0 {
		slices.Sort(s.refused)
		t.Errorf("services lack permissions:\n%s", strings.Join(slices.Compact(s.refused), "\n"))
	}
}

func (s *site) documents(t *testing.T, publisher, client, globex *nats.Conn) {
	publish(t, publisher, "weir.docs.submit.acme.docs", `{"docId":"a1","text":"Lift keys are kept by the janitor."}`)
	events := s.events(t, publisher, "acme")
	publish(t, publisher, "weir.docs.submit.acme.docs", `{"docId":"a2","text":"The fire drill is on Monday."}`)
	s.await(t, events, "a2", messages.StatusReady)
	others := s.events(t, globex, "globex")
	publish(t, globex, "weir.docs.submit.globex.docs", `{"docId":"g1","text":"The fire drill is on Friday."}`)
	s.await(t, others, "g1", messages.StatusReady)

	for want, ask := range map[string]struct {
		nc      *nats.Conn
		subject string
	}{
		"a2": {client, "weir.rpc.acme.docs.retrieve"},
		"g1": {globex, "weir.rpc.globex.docs.retrieve"},
	} {
		var reply messages.RetrieveReply
		req := messages.RetrieveRequest{Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "fire drill"}}
		if err := bus.Call(t.Context(), ask.nc, ask.subject, nil, req, &reply); err != nil {
			t.Fatalf("%s: %v", ask.subject, err)
		}
		found := false
		for _, hit := range reply.Results {
			found = found || hit.DocID == want
			if hit.DocID[0] != want[0] { // ids begin with the letter of their tenant
				t.Errorf("%s: found %s, which is another tenant's", ask.subject, hit.DocID)
			}
		}
		if !found {
			t.Errorf("%s: got %d results without %s", ask.subject, len(reply.Results), want)
		}
	}
	publish(t, publisher, "weir.docs.delete.acme.docs", `{"docId":"a2"}`)
	s.await(t, events, "a2", messages.StatusDeleted)
}

// publish stores a message and wants its acknowledgement, as `nats pub --jetstream` does.
func publish(t *testing.T, nc *nats.Conn, subject, body string) {
	t.Helper()
	reply, err := nc.Request(subject, []byte(body), testkit.Patience)
	if err != nil || !bytes.Contains(reply.Data, []byte(`"stream":"`+messages.StreamDocs+`"`)) {
		t.Fatalf("publish to %s: %v, %v", subject, reply, err)
	}
}

func (s *site) upload(t *testing.T, operator, publisher *nats.Conn) {
	store, err := testkit.JetStream(t, operator).ObjectStore(t.Context(), messages.UploadBucket("acme"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(t.Context(), "big", bytes.Repeat([]byte("A line of a document.\n"), 2_000)); err != nil {
		t.Fatal(err)
	}
	events := s.events(t, publisher, "acme")
	publish(t, publisher, "weir.docs.submit.acme.docs", `{"docId":"big","contentType":"text/plain","upload":{"object":"big","size":44000}}`)
	s.await(t, events, "big", messages.StatusReady)
	if _, err := store.GetInfo(t.Context(), "big"); !errors.Is(err, jetstream.ErrObjectNotFound) {
		t.Errorf("the upload is still there: %v", err)
	}
}

func (s *site) deadLetter(t *testing.T, globex *nats.Conn) {
	events := s.events(t, globex, "globex")
	publish(t, globex, "weir.docs.submit.globex.docs", `{"docId":"bad","text":"x","metadata":{"unknown":1}}`)
	s.await(t, events, "bad", messages.StatusFailed)
	subject := func(op string) string { return messages.RPCSubject("globex", messages.TenantScope, op) }
	var list messages.DeadLetterList
	if err := bus.Call(t.Context(), globex, subject(messages.OpDLQList), nil, messages.ListDeadLetters{}, &list); err != nil || len(list.DeadLetters) != 1 {
		t.Fatalf("dead letters: %+v, %v", list, err)
	}
	ref := messages.DeadLetterRef{ID: list.DeadLetters[0].ID}
	if err := bus.Call(t.Context(), globex, subject(messages.OpDLQReplay), nil, ref, nil); err != nil {
		t.Fatal(err)
	}
	s.await(t, events, "bad", messages.StatusFailed)
}

// locked is a buffer that the connection's own goroutines may write to as well.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// weir runs a command line as a user of the sample, whose inbox prefix is given.
func (s *site) weir(user, tenant, prefix string, args ...string) (code int, out, errs string) {
	var stdout, stderr locked
	address := strings.Replace(s.url, "://", "://"+user+":"+password(user)+"@", 1)
	code = cli.Main(cli.IO{
		Args: append(args, "--nats-url", address, "--tenant", tenant, "--kb", "docs"), In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Getenv: func(name string) string {
			if name == "WEIR_NATS_INBOX_PREFIX" {
				return prefix
			}
			return ""
		},
	})
	return code, stdout.String(), stderr.String()
}

// tool works as a tenant does: it publishes and waits, asks, and deletes. Without the inbox prefix that its
// permissions name it hears nothing.
func (s *site) tool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bicycles.md")
	if err := os.WriteFile(file, []byte("# Bicycles\n\nThe spanner hangs behind the door.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	publish := []string{"publish", "--wait", "20s", file}
	query := []string{"query", "--timeout", "20s", "spanner"}
	for _, c := range []struct {
		user, prefix string
		args         []string
		want         int
		says         string
	}{
		{"acme-publisher", "_INBOX_acme", publish, cli.ExitOK, "1 ready"},
		{"acme-publisher", "_INBOX_acme", publish, cli.ExitOK, "1 unchanged"},
		{"acme-client", "_INBOX_acme", query, cli.ExitOK, "bicycles.md"},
		{"acme-client", "", []string{"query", "--timeout", "1s", "spanner"}, cli.ExitTimeout, ""},
		{"acme-publisher", "_INBOX_acme", []string{"docs", "delete", "--timeout", "20s", "bicycles.md"}, cli.ExitOK, "Deleted"},
		{"globex", "_INBOX_globex", publish, cli.ExitOK, "1 ready"},
		{"globex", "_INBOX_globex", query, cli.ExitOK, "bicycles.md"},
	} {
		tenant, _, _ := strings.Cut(c.user, "-")
		code, out, errs := s.weir(c.user, tenant, c.prefix, c.args...)
		if code != c.want || !strings.Contains(out, c.says) {
			t.Errorf("%s: weir %s: exit code %d, want %d and %q\n%s%s", c.user, c.args[0], code, c.want, c.says, out, errs)
		}
		if c.want == cli.ExitOK && errs != "" {
			t.Errorf("%s: weir %s complains: %s", c.user, c.args[0], errs)
		}
	}
}

// borders: each line is something a user must not be able to do.
func (s *site) borders(t *testing.T) {
	acme, globex := nats.CustomInboxPrefix("_INBOX_acme"), nats.CustomInboxPrefix("_INBOX_globex")
	for _, c := range []struct {
		user, publish, subscribe string
		prefix                   nats.Option
	}{
		{user: "acme-client", publish: "weir.rpc.globex.docs.retrieve", prefix: acme},
		{user: "acme-client", publish: "weir.rpc.acme._all.retrieve", prefix: acme},
		{user: "acme-client", publish: "weir.docs.submit.acme.docs", prefix: acme},
		{user: "acme-client", publish: "weir.rpc.acme.docs.kb_delete", prefix: acme},
		{user: "acme-client", publish: "weir.internal.embed", prefix: acme},
		{user: "acme-publisher", publish: "weir.docs.submit.globex.docs", prefix: acme},
		{user: "acme-publisher", publish: "weir.work.index.0.acme.docs", prefix: acme},
		{user: "acme-publisher", publish: "$JS.API.STREAM.MSG.GET.WEIR_DOCS", prefix: acme},
		{user: "acme-publisher", publish: "$JS.API.STREAM.INFO.WEIR_DOCS", prefix: acme},
		{user: "acme-publisher", subscribe: "weir.events.globex.>", prefix: acme},
		{user: "acme-publisher", subscribe: "weir.events.>", prefix: acme},
		{user: "acme-client", subscribe: "_INBOX.>", prefix: acme},
		{user: "acme-client", subscribe: "_INBOX_globex.>", prefix: acme},
		{user: "globex", subscribe: "_INBOX_acme.>", prefix: globex},
		{user: "globex", subscribe: "weir.docs.>", prefix: globex},
		{user: "globex", publish: "weir.rpc.acme._.kb_list", prefix: globex},
		{user: "embedder", publish: "weir.events.acme.docs.a1.Ready"},
		{user: "retriever", publish: "weir.work.index.0.acme.docs"},
		{user: "retriever", publish: "$JS.API.STREAM.DELETE.WEIR_DOCS"},
		{user: "ingester", publish: "$JS.API.STREAM.DELETE.WEIR_DOCS"},
	} {
		refused := make(chan string, 4)
		opts := []nats.Option{}
		if c.prefix != nil {
			opts = append(opts, c.prefix)
		}
		nc := s.connect(c.user, func(what string) { refused <- what }, opts...)
		if c.subscribe != "" {
			sub, err := nc.SubscribeSync(c.subscribe)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sub.NextMsg(testkit.Patience); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s subscribes to %s: got %v, want it refused", c.user, c.subscribe, err)
			}
			continue
		}
		if err := nc.Publish(c.publish, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushTimeout(testkit.Patience); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
		default:
			if !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
				t.Errorf("%s publishes to %s: got %v, want it refused", c.user, c.publish, nc.LastError())
			}
		}
	}
}

// roleBounds: each statement must be refused to the role.
func (s *site) roleBounds(t *testing.T) {
	for _, c := range []struct{ role, statement string }{
		{"weir_retriever", "DELETE FROM documents"},
		{"weir_retriever", "UPDATE knowledge_bases SET name = 'x'"},
		{"weir_retriever", "CREATE TABLE mine (id int)"},
		{"weir_ingester", "DROP TABLE documents"},
		{"weir_ingester", "CREATE TABLE mine (id int)"},
		{"weir_ingester", "DELETE FROM knowledge_bases"},
		{"weir_ingester", "INSERT INTO chunks SELECT * FROM chunks"},
		{"weir_ingester", "DELETE FROM dead_letters"},
	} {
		conn, err := pgx.Connect(t.Context(), s.as(c.role))
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), c.statement)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "42501" {
			t.Errorf("%s runs %q: got %v, want it refused", c.role, c.statement, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
