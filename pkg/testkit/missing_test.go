package testkit_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/testkit"
)

// recorder is a test whose failing can be looked at.
type recorder struct {
	testing.TB

	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}

func TestAMissingServerFailsAndSaysWhatToDo(t *testing.T) {
	t.Setenv(testkit.DatabaseEnv, "")
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		testkit.Postgres(r)
	}()
	<-done
	if !strings.Contains(r.said, "make test") {
		t.Errorf("message: got %q, want one that names `make test`", r.said)
	}
}
