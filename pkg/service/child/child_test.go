package child_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service/child"
	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func spec(t *testing.T, script string) child.Spec {
	t.Helper()
	dir := t.TempDir()
	return child.Spec{
		Name: "sample", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		LogPath: filepath.Join(dir, "log"), RecordPath: filepath.Join(dir, "record"), Grace: 200 * time.Millisecond,
	}
}

func start(t *testing.T, s child.Spec) *child.Process {
	t.Helper()
	p, err := child.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestTheErrorOfADeadChildHoldsTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	s := spec(t, "echo no such model >&2; exit 3")
	if err := os.WriteFile(s.LogPath, []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, s)
	<-p.Done()
	text := p.Err().Error()
	if !strings.Contains(text, "no such model") || !strings.Contains(text, "exit status 3") || strings.Contains(text, "earlier") {
		t.Errorf("error: got %q, want exit status 3 and the line this child wrote", text)
	}
}

func TestAChildThatIgnoresTermIsKilledWithItsOffspring(t *testing.T) {
	t.Parallel()
	s := spec(t, `trap "" TERM; sleep 600 & echo $!; wait`)
	p := start(t, s)
	var offspring child.Identity
	testkit.Eventually(t, func() error {
		body, err := os.ReadFile(s.LogPath)
		if err != nil {
			return err
		}
		offspring, err = identify(string(body))
		return err
	})
	p.Stop()
	testkit.Eventually(t, func() error {
		if offspring.Alive() {
			return errors.New("the offspring lives")
		}
		return nil
	})
	if _, err := os.Stat(s.RecordPath); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("record of a stopped child: got %v, want it gone", err)
	}
}

func identify(pid string) (child.Identity, error) {
	n := 0
	for _, c := range strings.TrimSpace(pid) {
		n = 10*n + int(c-'0')
	}
	if n == 0 {
		return child.Identity{}, errors.New("no pid yet")
	}
	return child.Identify(n)
}

func TestAnOrphanIsStoppedAndAStrangerIsNot(t *testing.T) {
	t.Parallel()
	s := spec(t, "")
	s.Path, s.Args = "/bin/sleep", []string{"600"} // no shell, which would become another program after the record
	p := start(t, s)
	id, err := child.ReadIdentity(s.RecordPath)
	if err != nil {
		t.Fatal(err)
	}
	// A stranger with the same pid: it started at another time.
	stranger := id
	stranger.Started += "1"
	if err := statedir.WriteJSON(s.RecordPath, stranger); err != nil {
		t.Fatal(err)
	}
	if pid, err := child.StopOrphan(t.Context(), s.RecordPath, time.Second); err != nil || pid != 0 {
		t.Errorf("stranger: got %d, %v, want it left alone", pid, err)
	}
	select {
	case <-p.Done():
		t.Fatal("the stranger was stopped")
	default:
	}

	if err := statedir.WriteJSON(s.RecordPath, id); err != nil {
		t.Fatal(err)
	}
	if pid, err := child.StopOrphan(t.Context(), s.RecordPath, time.Second); err != nil || pid != p.PID() {
		t.Fatalf("orphan: got %d, %v, want %d", pid, err, p.PID())
	}
	<-p.Done()
	if pid, err := child.StopOrphan(t.Context(), s.RecordPath, time.Second); err != nil || pid != 0 {
		t.Errorf("nothing recorded: got %d, %v, want 0", pid, err)
	}
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	s := spec(t, "")
	s.Path = "/nonexistent/program"
	if _, err := child.Start(s); err == nil || !strings.Contains(err.Error(), "/nonexistent/program") {
		t.Errorf("error: got %v, want one that names the program", err)
	}
}
