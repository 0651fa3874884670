package testkit

import (
	"os"
	"testing"

	"github.com/weir-project/weir/pkg/service/statedir"
)

// PostgresPrograms returns the directory of Postgres's programs, for tests that start a cluster of their own: that of set-up,
// or that of the test server.
func PostgresPrograms(t testing.TB) string {
	t.Helper()
	if setup, err := Setup(t); err == nil && setup.Postgres["18"] != "" {
		return setup.Postgres["18"]
	}
	var bin string
	row := Tx(t).QueryRow(t.Context(), "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
	if err := row.Scan(&bin); err != nil {
		t.Fatalf("find the programs of postgres: %v", err)
	}
	return bin
}

// Setup reads what scripts/setup has recorded for this machine.
func Setup(t testing.TB) (statedir.Setup, error) {
	t.Helper()
	file := os.Getenv("WEIR_SETUP")
	if file == "" {
		dir, err := statedir.Locate(os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		file = dir.Path("setup.json")
	}
	return statedir.ReadSetup(file)
}

// PublicDir returns a directory that Postgres's user can reach, which that of t.TempDir is not. It is removed when the test
// ends.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weirpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}
