package testkit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/service/migrate"
)

// DatabaseEnv names the environment variable with the server to test on, a URL whose user may create
// databases.
const DatabaseEnv = "TEST_DATABASE_URL"

// missingDatabase is what a test says when there is no server.
const missingDatabase = DatabaseEnv + " is not set: run `make test`, which starts a Postgres of its own, " +
	"or set it to the URL of a server (Postgres 15 or newer with pgvector) whose user may create databases"

const (
	databaseTimeout = 60 * time.Second
	poolConns       = 8
)

// Postgres returns a pool of at most eight connections on a fresh database with every migration
// applied. Both are gone when the test ends.
func Postgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, PostgresURL(t))
}

// PostgresURL is Postgres for tests that hand the address on: the URL of a fresh, migrated database
// that is dropped when the test ends, whoever is still connected.
func PostgresURL(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	admin := adminURL(t)
	template := ensureTemplate(ctx, t, admin)
	name := fmt.Sprintf("%s%d_%s", testPrefix, time.Now().Unix(), randomHex(t))
	if err := onServer(ctx, admin, func(c *pgx.Conn) error {
		return exec(ctx, c, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template))
	}); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() { dropDatabase(t, admin, name) })
	return withDatabase(t, admin, name)
}

// EmptyPostgresURL is PostgresURL without migrations, for tests of migrating itself.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	admin := adminURL(t)
	name := fmt.Sprintf("%s%d_%s", testPrefix, time.Now().Unix(), randomHex(t))
	if err := onServer(ctx, admin, func(c *pgx.Conn) error {
		return exec(ctx, c, "CREATE DATABASE "+quote(name)+" TEMPLATE template0")
	}); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() { dropDatabase(t, admin, name) })
	return withDatabase(t, admin, name)
}

// Pool connects to url, eight connections at most unless configured otherwise, and closes the pool when the test ends.
// Tests of a store pass pgstore.Configure.
func Pool(t testing.TB, url string, configure ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("parse database url: %v", err)
	}
	cfg.MaxConns = poolConns
	for _, f := range configure {
		f(cfg)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open pool: %v", err)
	}
	t.Cleanup(pool.Close)
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatalf("connect to test database: %v", err)
	}
	return pool
}

// Tx returns a transaction on a migrated database that all such tests share. It is rolled back when
// the test ends. For tests of a statement or two; what must commit needs Postgres.
func Tx(t testing.TB) pgx.Tx {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), databaseTimeout)
	defer cancel()
	admin := adminURL(t)
	shared := ensureShared(ctx, t, admin)
	conn, err := pgx.Connect(ctx, withDatabase(t, admin, shared))
	if err != nil {
		t.Fatalf("connect to shared test database: %v", err)
	}
	// Closing the session rolls back; t.Context() is over by then.
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Errorf("close test session: %v", err)
		}
	})
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatalf("begin test transaction: %v", err)
	}
	return tx
}

func adminURL(t testing.TB) string {
	t.Helper()
	admin := os.Getenv(DatabaseEnv)
	if admin == "" {
		t.Fatal(missingDatabase)
	}
	if _, err := pgx.ParseConfig(admin); err != nil {
		t.Fatalf("%s: %v", DatabaseEnv, err)
	}
	return admin
}

// withDatabase is the address of another database on the same server.
func withDatabase(t testing.TB, admin, name string) string {
	t.Helper()
	u, err := url.Parse(admin)
	if err != nil || u.Scheme == "" {
		t.Fatalf("%s must be a URL (postgres://user:password@host:port/database)", DatabaseEnv)
	}
	u.Path = "/" + name
	return u.String()
}

func onServer(ctx context.Context, admin string, work func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", DatabaseEnv, err)
	}
	defer func() {
		if cerr := conn.Close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	return work(conn)
}

func exec(ctx context.Context, c *pgx.Conn, statement string, args ...any) error {
	_, err := c.Exec(ctx, statement, args...)
	return err
}

func dropDatabase(t testing.TB, admin, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	err := onServer(ctx, admin, func(c *pgx.Conn) error {
		return exec(ctx, c, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
	})
	if err != nil {
		t.Errorf("drop test database %s: %v", name, err)
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func randomHex(t testing.TB) string {
	t.Helper()
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatalf("read random bytes: %v", err)
	}
	return hex.EncodeToString(b[:])
}

// Names of what testkit makes on the server. A test database carries its creation second, a template
// the hash of the migrations it holds.
const (
	testPrefix     = "weir_test_"
	templatePrefix = "weir_tpl_"
	sharedPrefix   = "weir_shared_"
)

// templateLock serialises the building of templates over all test processes of a server.
const templateLock int64 = 0x57656972_74706c

// leftoverAge is when a database of a test run that was killed may go.
const leftoverAge = time.Hour

// ensureTemplate returns the name of the template database for the present migrations, and builds it
// when it is missing.
func ensureTemplate(ctx context.Context, t testing.TB, admin string) string {
	t.Helper()
	hash, err := migrate.Hash(migrations.FS())
	if err != nil {
		t.Fatal(err)
	}
	name := templatePrefix + hash
	err = onServer(ctx, admin, func(c *pgx.Conn) error {
		if made, err := exists(ctx, c, name); made || err != nil {
			return err
		}
		return underLock(ctx, c, func() error { return buildTemplate(ctx, c, admin, name) })
	})
	if err != nil {
		t.Fatalf("prepare test template: %v", err)
	}
	return name
}

// buildTemplate migrates a database under another name first, so that a template of the right name is
// always complete.
func buildTemplate(ctx context.Context, c *pgx.Conn, admin, name string) error {
	if made, err := exists(ctx, c, name); made || err != nil {
		return err
	}
	dropLeftovers(ctx, c)
	building := name + "_building"
	u, err := url.Parse(admin)
	if err != nil {
		return fmt.Errorf("parse %s: %w", DatabaseEnv, err)
	}
	u.Path = "/" + building
	if err := exec(ctx, c, "DROP DATABASE IF EXISTS "+quote(building)+" WITH (FORCE)"); err != nil {
		return err
	}
	if err := exec(ctx, c, "CREATE DATABASE "+quote(building)+" TEMPLATE template0"); err != nil {
		return err
	}
	if _, err := migrate.Up(ctx, u.String(), migrations.FS(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := exec(ctx, c, "ALTER DATABASE "+quote(building)+" WITH ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	return exec(ctx, c, "ALTER DATABASE "+quote(building)+" RENAME TO "+quote(name))
}

// ensureShared returns the database of Tx, a copy of the template.
func ensureShared(ctx context.Context, t testing.TB, admin string) string {
	t.Helper()
	template := ensureTemplate(ctx, t, admin)
	name := sharedPrefix + strings.TrimPrefix(template, templatePrefix)
	err := onServer(ctx, admin, func(c *pgx.Conn) error {
		if made, err := exists(ctx, c, name); made || err != nil {
			return err
		}
		return underLock(ctx, c, func() error {
			if made, err := exists(ctx, c, name); made || err != nil {
				return err
			}
			return exec(ctx, c, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template))
		})
	})
	if err != nil {
		t.Fatalf("prepare shared test database: %v", err)
	}
	return name
}

func exists(ctx context.Context, c *pgx.Conn, name string) (bool, error) {
	var made bool
	err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&made)
	return made, err
}

// underLock holds the advisory lock until the session of c ends.
func underLock(ctx context.Context, c *pgx.Conn, work func() error) error {
	if err := exec(ctx, c, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("take template lock: %w", err)
	}
	return work()
}

// dropLeftovers removes databases of killed test runs. It runs only when a new template is built, and
// what it cannot drop now it drops another time.
func dropLeftovers(ctx context.Context, c *pgx.Conn) {
	rows, err := c.Query(ctx, `SELECT datname FROM pg_database d WHERE starts_with(datname, $1)
		AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datid = d.oid)`, testPrefix)
	if err != nil {
		return
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return
	}
	for _, name := range names {
		second, _, _ := strings.Cut(strings.TrimPrefix(name, testPrefix), "_")
		made, err := strconv.ParseInt(second, 10, 64)
		if err == nil && time.Since(time.Unix(made, 0)) > leftoverAge {
			_, _ = c.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name))
		}
	}
}
