package testkit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := testkit.Postgres(t), testkit.Postgres(t)
	if _, err := a.Exec(t.Context(), "CREATE TABLE only_in_a (id int)"); err != nil {
		t.Fatal(err)
	}
	var there bool
	if err := b.QueryRow(t.Context(), "SELECT to_regclass('only_in_a') IS NOT NULL").Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		t.Error("a table made in one database is in the other")
	}
}

func TestATestDatabaseHasTheMigrations(t *testing.T) {
	t.Parallel()
	var version int64
	row := testkit.Postgres(t).QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version")
	if err := row.Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version < 1 {
		t.Errorf("schema version: got %d, want at least 1", version)
	}
}

func TestTheDatabaseGoesWithTheTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		pool := testkit.Postgres(t)
		if err := pool.QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var left bool
	row := testkit.Tx(t).QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name)
	if err := row.Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left {
		t.Errorf("database %s is still there", name)
	}
}

func TestTxIsRolledBack(t *testing.T) {
	t.Parallel()
	t.Run("inner", func(t *testing.T) {
		if _, err := testkit.Tx(t).Exec(t.Context(), "CREATE TABLE short_lived (id int)"); err != nil {
			t.Fatal(err)
		}
	})
	var left bool
	row := testkit.Tx(t).QueryRow(t.Context(), "SELECT to_regclass('short_lived') IS NOT NULL")
	if err := row.Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left {
		t.Error("a table of a rolled back transaction is there")
	}
}

func TestNATSKeepsMessages(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) (func() *nats.Conn, int){
		"in process": func(t testing.TB) (func() *nats.Conn, int) {
			s, connect := testkit.NATS(t)
			return func() *nats.Conn { return connect() }, s.NumClients()
		},
		"listening": func(t testing.TB) (func() *nats.Conn, int) {
			s, connect := testkit.NATSListening(t)
			return func() *nats.Conn { return connect() }, s.NumClients()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connect, _ := start(t)
			storeOne(t, connect())
			js, err := jetstream.New(connect())
			if err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, func() error { return hasOne(t.Context(), js) })
		})
	}
}

func storeOne(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, MaxBytes: 1 << 40}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s.a", []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func hasOne(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, "S")
	if err != nil {
		return err
	}
	if got := stream.CachedInfo().State.Msgs; got != 1 {
		return errors.New("stream does not hold exactly one message")
	}
	return nil
}

func TestEventuallyTriesUntilNil(t *testing.T) {
	t.Parallel()
	calls := 0
	testkit.Eventually(t, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 3 {
		t.Errorf("calls: got %d, want 3", calls)
	}
}
