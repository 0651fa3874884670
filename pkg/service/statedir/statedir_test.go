package statedir_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/service/statedir"
)

func dir(t *testing.T) statedir.Dir {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	d, err := statedir.Locate(func(k string) string { return map[string]string{"WEIR_HOME": home}[k] })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOnlyOneHoldsTheDirectory(t *testing.T) {
	t.Parallel()
	d := dir(t)
	expectInUse := func(want bool) {
		t.Helper()
		if got, err := d.InUse(); err != nil || got != want {
			t.Errorf("in use: got %v, %v, want %v", got, err, want)
		}
	}
	expectInUse(false)
	lock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock(); !errors.Is(err, statedir.ErrLocked) {
		t.Errorf("second lock: got %v, want ErrLocked", err)
	}
	expectInUse(true)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	expectInUse(false)
}

func TestKeysStayAndAreNotReadableByOthers(t *testing.T) {
	t.Parallel()
	d := dir(t)
	first, err := d.Keys()
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if first != second || len(first.PostgresPassword) < 32 || first.PostgresPassword == first.NATSPassword {
		t.Errorf("keys: got %+v and %+v, want the same two long and different passwords", first, second)
	}
	info, err := os.Stat(d.Path("keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %o, want 600", info.Mode().Perm())
	}
}

func TestTheRecordOfARunComesBack(t *testing.T) {
	t.Parallel()
	d := dir(t)
	if _, err := d.ReadRun(); !errors.Is(err, statedir.ErrNoRun) {
		t.Errorf("no run: got %v, want ErrNoRun", err)
	}
	want := statedir.Run{PID: 7, State: statedir.StateReady, NATSURL: "nats://x", Parts: []statedir.Part{{Name: "nats", Port: 3}}}
	if err := d.WriteRun(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadRun()
	if err != nil || got.PID != want.PID || got.NATSURL != want.NATSURL || len(got.Parts) != 1 || got.Parts[0] != want.Parts[0] {
		t.Errorf("record: got %+v, %v, want %+v", got, err, want)
	}
	for range 2 {
		if err := d.RemoveRun(); err != nil {
			t.Error(err)
		}
	}
}

func TestAMissingSetupSaysWhatToRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "setup.json")
	if _, err := statedir.ReadSetup(path); !errors.Is(err, statedir.ErrNoSetup) || !strings.Contains(err.Error(), "scripts/setup") {
		t.Errorf("missing: got %v, want ErrNoSetup with the command", err)
	}
	if err := os.WriteFile(path, []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.ReadSetup(path); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("other version: got %v, want it refused", err)
	}
}

func TestAPortInUseIsPassedOver(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	got, err := statedir.FreePort(0, taken)
	if err != nil || got == taken || got == 0 {
		t.Errorf("port: got %d, %v, want another than %d", got, err, taken)
	}
}
