package chaos_test

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/service/localpg"
	"github.com/weir-project/weir/pkg/service/migrate"
	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

// postgres is a private cluster that can be killed.
type postgres struct {
	t       *testing.T
	cfg     localpg.Config
	cluster *localpg.Cluster
}

func startPostgres(t *testing.T) *postgres {
	t.Helper()
	port, err := statedir.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &postgres{t: t, cfg: localpg.Config{
		Bin: testkit.PostgresPrograms(t), Dir: filepath.Join(testkit.PublicDir(t), "pg"), Password: "s3cret", Port: port,
		Logger: slog.New(slog.DiscardHandler),
	}}
	p.start()
	t.Cleanup(func() {
		if err := p.cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// start starts the server. Processes of a killed one may live on for a moment and keep their memory: until
// they are gone it does not start.
func (p *postgres) start() {
	p.t.Helper()
	testkit.Eventually(p.t, func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p.cluster, err = localpg.Start(ctx, p.cfg)
		return err
	})
}

// kill ends the postmaster at once; its children notice and end.
func (p *postgres) kill() {
	p.t.Helper()
	if err := syscall.Kill(p.cluster.PID(), syscall.SIGKILL); err != nil {
		p.t.Fatalf("kill postgres: %v", err)
	}
}

// database makes an empty, migrated database and returns its address.
func (p *postgres) database(name string) string {
	p.t.Helper()
	admin, err := pgx.Connect(p.t.Context(), p.cluster.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	defer admin.Close(p.t.Context()) //nolint:errcheck // it only made a database
	if _, err := admin.Exec(p.t.Context(), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		p.t.Fatal(err)
	}
	u, err := url.Parse(p.cluster.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	u.Path = "/" + name
	if _, err := migrate.Up(p.t.Context(), u.String(), migrations.FS(), p.cfg.Logger); err != nil {
		p.t.Fatal(err)
	}
	return u.String()
}

func (p *postgres) fault() error { return nil } // a dead one fails everything else
