package pgstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/testkit"
)

// Every statement is prepared against a migrated database, so that a typo or a dropped column fails
// without running the feature.
func TestEveryStatementPrepares(t *testing.T) {
	pool := testkit.Postgres(t)
	files, err := filepath.Glob("queries/*.sql")
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d statements (%v), want at least 50", len(files), err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Conn().Prepare(t.Context(), name, string(text)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		})
	}
}

// A statement that nothing names is dead.
func TestEveryStatementIsUsed(t *testing.T) {
	files, err := filepath.Glob("queries/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if !strings.Contains(all.String(), `"`+name+`"`) {
			t.Errorf("%s is not used", file)
		}
	}
}
