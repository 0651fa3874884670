package deploytest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/migrate"
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
	deploy = "../../../../deploy"
	dims   = 8
	model  = "fake-model"
)

// site is the sample installation: the NATS server of deploy/nats, a database with the roles of
// deploy/postgres, and every service under its own user and role.
type site struct {
	t        *testing.T
	url      string
	database string
	roles    map[string]string // name in the files -> name here

	mu      sync.Mutex
	refused []string // what services were not allowed to do
}

// password of a user of the sample, which reads it from the environment.
func password(user string) string { return "pw" + strings.ReplaceAll(user, "-", "") }

func startNATS(t *testing.T) string {
	t.Helper()
	for _, user := range []string{"sys", "operator", "ingester", "embedder", "indexer", "retriever", "acme-publisher", "acme-client", "globex"} {
		t.Setenv("NATS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD", password(user))
	}
	opts, err := server.ProcessConfigFile(filepath.Join(deploy, "nats", "weir.conf"))
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.HTTPHost, opts.HTTPPort = "127.0.0.1", server.RANDOM_PORT, "", 0
	opts.StoreDir, opts.NoSigs, opts.NoLog = t.TempDir(), true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server of the sample does not start")
	}
	return s.ClientURL()
}

// connect opens a connection as a user of the sample. Refusals go to refused, when it is not nil.
func (s *site) connect(user string, refused func(string), opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.url, append([]nats.Option{
		nats.UserInfo(user, password(user)), nats.Name(user), nats.PermissionErrOnSubscribe(true),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if refused != nil && errors.Is(err, nats.ErrPermissionViolation) {
				refused(user + ": " + err.Error())
			}
		}),
	}, opts...)...)
	if err != nil {
		s.t.Fatalf("connect as %s: %v", user, err)
	}
	closed := nc.StatusChanged(nats.CLOSED)
	s.t.Cleanup(func() { nc.Close(); <-closed })
	return nc
}

func (s *site) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, what)
}

// prepareDatabase makes an empty database, runs roles.sql, the migrations as the owner, and grants.sql.
// Roles belong to the whole server, so they have names of their own here.
func (s *site) prepareDatabase() {
	t := s.t
	suffix := fmt.Sprintf("_%d_%d", os.Getpid(), time.Now().UnixNano())
	s.roles = map[string]string{}
	var rename []string
	for _, role := range []string{"weir_owner", "weir_ingester", "weir_retriever"} {
		s.roles[role] = role + suffix
		rename = append(rename, role, role+suffix)
	}
	admin := os.Getenv(testkit.DatabaseEnv)
	t.Cleanup(func() { // after the database is gone
		if s.database == "" {
			return
		}
		for _, role := range s.roles {
			execute(t, admin, "DROP ROLE IF EXISTS "+role)
		}
	})
	s.database = testkit.EmptyPostgresURL(t)
	script := func(name, url string) {
		body, err := os.ReadFile(filepath.Join(deploy, "postgres", name))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, url, strings.NewReplacer(rename...).Replace(string(body)))
	}
	script("roles.sql", s.database)
	if _, err := migrate.Up(t.Context(), s.as("weir_owner"), migrations.FS(), testkit.Logger(t)); err != nil {
		t.Fatal(err)
	}
	script("grants.sql", s.as("weir_owner"))
}

func execute(t *testing.T, url, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, script); err != nil {
		t.Errorf("run %.60q: %v", script, err)
	}
}

// as is the address of the database with the rights of a role.
func (s *site) as(role string) string {
	join := "?"
	if strings.Contains(s.database, "?") {
		join = "&"
	}
	return s.database + join + "role=" + s.roles[role]
}

func (s *site) store(role string) *pgstore.Store {
	s.t.Helper()
	return pgstore.New(testkit.Pool(s.t, s.as(role), pgstore.Configure, func(c *pgxpool.Config) { c.MaxConns = 6 }))
}

// provision makes the streams as the operator.
func (s *site) provision() {
	s.t.Helper()
	js := testkit.JetStream(s.t, s.connect("operator", nil))
	if _, err := bus.Provision(s.t.Context(), js, messages.Streams(), messages.Stages(), bus.Settings{}); err != nil {
		s.t.Fatal(err)
	}
}

// runServices runs the four services, each as its own user and role, and waits until all are ready.
func (s *site) runServices() {
	t, log := s.t, testkit.Logger(s.t)
	provider := httptest.NewServer(fakeserver.New(fakeserver.Options{Dims: dims}))
	t.Cleanup(provider.Close)
	services := testkit.NewServices(t)
	js := func(user string) jetstream.JetStream { return testkit.JetStream(t, s.connect(user, s.note)) }
	services.Add(ingester.New(ingester.Config{}, ingester.Deps{Lent: service.Lent{JS: js("ingester"), Logger: log, Ready: services.Ready}, Store: s.store("weir_ingester")}))
	services.Add(embedder.New(embedder.Config{BaseURL: provider.URL + "/v1", Model: model, Dims: dims}, embedder.Deps{Lent: service.Lent{JS: js("embedder"), Logger: log, Ready: services.Ready}}))
	services.Add(indexer.New(indexer.Config{Model: model, Dims: dims}, indexer.Deps{Lent: service.Lent{JS: js("indexer"), Logger: log, Ready: services.Ready}, Store: s.store("weir_owner")}))
	services.Add(retriever.New(retriever.Config{}, retriever.Deps{NC: s.connect("retriever", s.note), Store: s.store("weir_retriever"), Logger: log, Ready: services.Ready}))
	services.Start()
}

func startSite(t *testing.T) *site {
	s := &site{t: t, url: startNATS(t)}
	s.prepareDatabase()
	s.provision()
	s.runServices()
	return s
}

// events follows the events of a tenant as a user that may, and returns the status of each document.
func (s *site) events(t *testing.T, nc *nats.Conn, tenant string) <-chan messages.Event {
	t.Helper()
	out := make(chan messages.Event, 256)
	sub, err := nc.Subscribe("weir.events."+tenant+".>", func(m *nats.Msg) {
		var e messages.Event
		if err := messages.DecodeStrict(m.Data, &e); err != nil {
			t.Errorf("event %s: %v", m.Subject, err)
			return
		}
		out <- e
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection closes it too
	if err := nc.FlushTimeout(testkit.Patience); err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *site) await(t *testing.T, events <-chan messages.Event, doc string, want messages.DocumentStatus) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	for {
		select {
		case e := <-events:
			if e.DocID == doc && e.Status == want {
				return
			}
			if e.DocID == doc && e.Status.Terminal() {
				t.Fatalf("%s ended %s (%v), want %s", doc, e.Status, e.Error, want)
			}
		case <-deadline:
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Fatalf("%s did not become %s; refused meanwhile: %v", doc, want, s.refused)
		}
	}
}
