package migrate_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/service/migrate"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folder(statements ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i, s := range statements {
		files[fmt.Sprintf("%04d_x.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + s)}
	}
	return files
}

var discard = slog.New(slog.DiscardHandler)

func TestConcurrentMigratorsApplyEachFileOnce(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyPostgresURL(t)
	files := folder("CREATE TABLE a (id int);", "INSERT INTO a VALUES (1);", "")
	files["0003_x.sql"].Data = []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY ia ON a (id);")
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			at, err := migrate.Up(t.Context(), url, files, discard)
			if err == nil && at != (migrate.Versions{Current: 3, Target: 3}) {
				return fmt.Errorf("versions: got %+v, want 3 and 3", at)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := testkit.Pool(t, url).QueryRow(t.Context(), "SELECT count(*) FROM a").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != 1 {
		t.Errorf("rows: got %d, want 1", rows)
	}
}

func TestCheckTellsOlderFromNewer(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyPostgresURL(t)
	one, two := folder("SELECT 1;"), folder("SELECT 1;", "SELECT 2;")
	if err := migrate.Check(t.Context(), url, one); !errors.Is(err, migrate.ErrOlder) || !strings.Contains(err.Error(), "weir migrate") {
		t.Errorf("empty database: got %v, want ErrOlder with the command", err)
	}
	if _, err := migrate.Up(t.Context(), url, two, discard); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Check(t.Context(), url, two); err != nil {
		t.Errorf("migrated database: got %v, want nil", err)
	}
	if err := migrate.Check(t.Context(), url, one); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("older program: got %v, want ErrNewer", err)
	}
	if _, err := migrate.Up(t.Context(), url, one, discard); !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("migrating with an older program: got %v, want ErrNewer", err)
	}
}

func TestAFailingFileIsNamedAndLeavesTheFormerOnes(t *testing.T) {
	t.Parallel()
	url := testkit.EmptyPostgresURL(t)
	if _, err := migrate.Up(t.Context(), url, folder("SELECT 1;", "SELECT nonsense;"), discard); err == nil ||
		!strings.Contains(err.Error(), "0002_x.sql") {
		t.Errorf("error: got %v, want one that names the file", err)
	}
	at, err := migrate.Version(t.Context(), url, folder("SELECT 1;"))
	if err != nil || at.Current != 1 {
		t.Errorf("version: got %+v, %v, want 1", at, err)
	}
}

func TestHashChangesWithEveryFile(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, files := range []fstest.MapFS{folder("a"), folder("b"), folder("a", "b"), folder("ab"), folder()} {
		hash, err := migrate.Hash(files)
		if err != nil {
			t.Fatal(err)
		}
		if seen[hash] {
			t.Errorf("hash %s comes twice", hash)
		}
		seen[hash] = true
	}
}
