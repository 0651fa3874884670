package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/service/child"
	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

// fakeEmbedding is an embedding server without a model: the story is about processes. It gets the
// arguments of the real one.
const fakeEmbedding = `
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def reply(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.reply(b"{}")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(json.dumps({"data": [{"index": 0, "embedding": [0.6, 0.8]}], "model": "m"}).encode())
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), H).serve_forever()
`

// machine is a state directory with weir commands run on it as processes.
type machine struct {
	t   *testing.T
	env []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	base, err := os.MkdirTemp("", "weirup") // t.TempDir is closed to Postgres's user
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(base, "embedding.py")
	if err := os.WriteFile(script, []byte(fakeEmbedding), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := setupOf(t)
	setup.Embedding.Script = script
	if err := statedir.WriteJSON(filepath.Join(base, "setup.json"), setup); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, env: []string{
		actAsWeir + "=1", "HOME=" + base, "WEIR_HOME=" + filepath.Join(base, "home"),
		"WEIR_SETUP=" + filepath.Join(base, "setup.json"), "PATH=" + os.Getenv("PATH"),
	}}
	t.Cleanup(func() {
		m.weir("down")
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	return m
}

// setupOf is what scripts/setup has recorded for this machine.
func setupOf(t *testing.T) statedir.Setup {
	t.Helper()
	setup, err := testkit.Setup(t)
	if err != nil {
		t.Fatalf("this test runs a real Postgres: %v; `make test` does all of it", err)
	}
	return setup
}

func (m *machine) weir(args ...string) (code int, out string) {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = m.env
	body, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(body)
}

func (m *machine) expect(want int, text string, args ...string) {
	m.t.Helper()
	code, out := m.weir(args...)
	if code != want || !strings.Contains(out, text) {
		m.t.Fatalf("weir %s: got %d\n%s\nwant %d and %q", strings.Join(args, " "), code, out, want, text)
	}
}

func (m *machine) status() up.Status {
	m.t.Helper()
	_, out := m.weir("status", "--json")
	var s up.Status
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&s); err != nil {
		m.t.Fatalf("status: %v in %s", err, out)
	}
	return s
}

func (m *machine) part(name string) statedir.Part {
	m.t.Helper()
	for _, p := range m.status().Parts {
		if p.Name == name {
			return p
		}
	}
	m.t.Fatalf("no part %s", name)
	return statedir.Part{}
}

func (m *machine) kill(pid int) {
	m.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		m.t.Fatal(err)
	}
}

// killRun kills the process of `weir up` and waits until it is gone.
func (m *machine) killRun() {
	m.t.Helper()
	m.kill(m.status().PID)
	testkit.Eventually(m.t, func() error {
		if m.status().Running {
			return errors.New("the killed process still holds the directory")
		}
		return nil
	})
}

var detached = []string{"up", "--detach", "--only", "nats,postgres,embedding"}

func TestTheStoryOfUpStatusAndDown(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.expect(ExitUnavailable, "weir up", "status")
	m.expect(ExitOK, "Weir runs", detached...)
	m.expect(ExitOK, "postgres", "status")
	m.expect(ExitUnavailable, "running already", detached...)
	m.expect(ExitUnavailable, "running already", "up", "--only", "nats")
	m.expect(ExitOK, "up to date", "migrate", "--check")

	// The process is killed: Postgres is taken over, the embedding server is stopped.
	before, orphan := m.status(), m.part("embedding")
	identity, err := child.Identify(orphan.PID)
	if err != nil {
		t.Fatal(err)
	}
	postgres := m.part("postgres").PID
	m.killRun()
	m.expect(ExitUnavailable, "killed", "status")
	for name, want := range map[string]string{"nats": "killed", "postgres": "left", "embedding": "left"} {
		if got := m.part(name).State; got != want {
			t.Errorf("%s of the killed run is %q, want %q", name, got, want)
		}
	}
	m.expect(ExitOK, "Weir runs", detached...)
	if got := m.part("postgres"); got.PID != postgres || got.Note == "" {
		t.Errorf("postgres after the kill: got %+v, want pid %d taken over", got, postgres)
	}
	if identity.Alive() {
		t.Errorf("the orphaned embedding server %d lives", orphan.PID)
	}
	if now := m.status(); now.PID == before.PID || now.NATSURL != before.NATSURL || now.DatabaseURL != before.DatabaseURL {
		t.Errorf("second run: got %+v, want another pid and the same addresses as %+v", now.Run, before.Run)
	}

	// A part is killed: it comes back where it was.
	for _, name := range []string{"embedding", "postgres"} {
		m.kill(m.part(name).PID)
	}
	testkit.Eventually(t, func() error {
		for _, name := range []string{"embedding", "postgres"} {
			if p := m.part(name); p.State != statedir.StateReady || p.Restarts == 0 {
				return fmt.Errorf("%s is %s after %d restarts", name, p.State, p.Restarts)
			}
		}
		return nil
	})
	m.expect(ExitOK, "ready", "status")
	m.expect(ExitOK, "up to date", "migrate")

	// Stopping, also what a killed run left.
	m.expect(ExitOK, "Stopped Weir", "down")
	m.expect(ExitOK, "Nothing runs", "down")
	m.expect(ExitOK, "Weir runs", "up", "--detach", "--only", "postgres")
	m.killRun()
	m.expect(ExitOK, "a killed Weir left", "down")
	m.expect(ExitUnavailable, "weir up", "status")
}

func TestAStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.env = append(m.env, "WEIR_SETUP=/nonexistent/setup.json")
	m.expect(ExitFailed, "scripts/setup", detached...)
	m.expect(ExitFailed, "scripts/setup", "up", "--only", "postgres")
	m.expect(ExitUnavailable, "no run", "status")
}
