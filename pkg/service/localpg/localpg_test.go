package localpg

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T) Config {
	t.Helper()
	port, err := statedir.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Bin: testkit.PostgresPrograms(t), Dir: filepath.Join(testkit.PublicDir(t), "pg"), Password: "s3cret", Port: port, Logger: testkit.Logger(t)}
}

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func execute(t *testing.T, c *Cluster, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var out string
	if err := conn.QueryRow(t.Context(), statement).Scan(&out); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

func TestItAsksForThePasswordAndListensOnTheLoopbackOnly(t *testing.T) {
	t.Parallel()
	c := start(t, config(t))
	if conn, err := pgx.Connect(t.Context(), strings.Replace(c.URL(), "s3cret", "wrong", 1)); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a wrong password got in")
	}
	if got := execute(t, c, "SHOW listen_addresses"); got != "127.0.0.1" {
		t.Errorf("listen_addresses: got %s", got)
	}
	if got := execute(t, c, "SELECT datcollate FROM pg_database WHERE datname = current_database()"); !strings.HasPrefix(got, "C") {
		t.Errorf("collation: got %s, want C or C.UTF-8", got)
	}
}

func TestARunningClusterIsAdoptedAndADeadOneStartedAgain(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	first := start(t, cfg)
	keep(t, first)

	other := cfg
	other.Port++
	second := start(t, other)
	if !second.Adopted() || second.PID() != first.PID() || second.Port() != first.Port() {
		t.Errorf("second start: got adopted %v, pid %d, port %d; want the first one's %d and %d",
			second.Adopted(), second.PID(), second.Port(), first.PID(), first.Port())
	}
	if got := execute(t, second, "SELECT x FROM kept"); got != "yes" {
		t.Errorf("kept row: got %q, want yes", got)
	}

	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if second.Running() {
			return os.ErrExist
		}
		return nil
	})
	// The other processes of the dead server may take a moment to notice.
	var third *Cluster
	testkit.Eventually(t, func() (err error) {
		third, err = Start(t.Context(), cfg)
		return err
	})
	if third.Adopted() {
		t.Error("a killed server was adopted")
	}
	if got := execute(t, third, "SELECT x FROM kept"); got != "yes" {
		t.Errorf("row after the crash: got %q, want yes", got)
	}

	pid, err := StopLeft(t.Context(), cfg)
	if err != nil || pid != third.PID() {
		t.Errorf("stop what is left: got %d, %v, want %d", pid, err, third.PID())
	}
	if pid, err := StopLeft(t.Context(), cfg); err != nil || pid != 0 {
		t.Errorf("nothing is left: got %d, %v, want 0", pid, err)
	}
}

func keep(t *testing.T, c *Cluster) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept (x text); INSERT INTO kept VALUES ('yes')"); err != nil {
		t.Fatal(err)
	}
}

func TestAStalePIDFileOfAnotherProgramIsNoObstacle(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	c := start(t, cfg)
	saved, err := os.ReadFile(c.pidPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	stranger := strangerOf(t, c)
	_, rest, _ := strings.Cut(string(saved), "\n")
	if err := os.WriteFile(c.pidPath(), []byte(strconv.Itoa(stranger)+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.owner.give(c.pidPath()); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg)
	if again.Adopted() || again.PID() == stranger {
		t.Errorf("started: got adopted %v, pid %d", again.Adopted(), again.PID())
	}
}

// strangerOf starts a harmless program as Postgres's user, whose pid Postgres would believe in.
func strangerOf(t *testing.T, c *Cluster) int {
	t.Helper()
	cmd := exec.Command("/bin/cat")
	if c.owner.switches {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.owner.uid, Gid: c.owner.gid}}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestMissingProgramsAndStrangeDirectoriesAreRefused(t *testing.T) {
	t.Parallel()
	cfg := Config{Bin: t.TempDir(), Dir: filepath.Join(testkit.PublicDir(t), "pg"), Password: "x", Logger: testkit.Logger(t)}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "scripts/setup") {
		t.Errorf("missing programs: got %v, want the command to run", err)
	}
	cfg.Bin = testkit.PostgresPrograms(t)
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "data", "something"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "not a cluster") {
		t.Errorf("a directory with other things: got %v, want it refused", err)
	}
}

func TestALongPathLeavesOutTheSocket(t *testing.T) {
	t.Parallel()
	long := &Cluster{cfg: Config{Dir: "/" + strings.Repeat("x", 100)}}
	if got := long.conf(1 << 30); !strings.Contains(got, "unix_socket_directories = ''") {
		t.Errorf("settings keep a socket whose path is too long:\n%s", got)
	}
	short := &Cluster{cfg: Config{Dir: "/it's"}}
	if got := short.conf(1 << 30); !strings.Contains(got, "unix_socket_directories = '/it''s/socket'") {
		t.Errorf("settings lack the quoted socket directory:\n%s", got)
	}
}

func TestMemorySettingsScaleWithinBounds(t *testing.T) {
	t.Parallel()
	c := &Cluster{}
	for memory, want := range map[int64]string{256 << 20: "65536kB", 4 << 30: "524288kB", 1 << 40: "2097152kB"} {
		if got := c.conf(memory); !strings.Contains(got, "shared_buffers = '"+want+"'") {
			t.Errorf("shared_buffers for %d bytes: want %s in\n%s", memory, want, got)
		}
	}
}
