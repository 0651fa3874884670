package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sample struct {
	Size  int
	Token Secret
}

func (s *sample) Flags(fs *flag.FlagSet) {
	fs.IntVar(&s.Size, "size", s.Size, "a size")
	fs.Var(&s.Token, "embedding-api-key", "a token")
}

func (s *sample) Validate() error {
	if s.Size < 1 {
		return errors.New("size: must be at least 1")
	}
	return nil
}

func TestSecretsNeverPrint(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&logged, nil))
	for _, v := range []any{
		Secret("hunter2"),
		SecretURL("postgres://me:hunter2@a:1,b:2/db?sslmode=disable"),
		SecretURL("nats://hunter2@a:4222,nats://me:hunter2@b"),
		SecretURL("host=a password=hunter2 user=me"),
		SecretURL("host=a password = 'hunter2 \\' hunter2' user=me"),
		SecretURL("postgres://a/db?user=me&password=hunter2&x=1"),
		struct{ S Secret }{"hunter2"},
	} {
		logger.Info("x", "v", v)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%v %+v %#v %s %q", v, v, v, v, v) + string(encoded) + logged.String()
		if strings.Contains(text, "hunter2") {
			t.Errorf("%T prints the secret: %s", v, text)
		}
	}
	if got := Secret("x").Reveal(); got != "x" {
		t.Errorf("revealed: got %q, want x", got)
	}
}

func TestPrecedenceIsFlagEnvironmentFileDefault(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "weir.conf")
	if err := os.WriteFile(file, []byte("# a comment\nsize 3\nlog-level warn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want int
	}{
		{"default", nil, nil, 1},
		{"file", []string{"--config", file}, nil, 3},
		{"environment over file", []string{"--config", file}, map[string]string{"WEIR_SIZE": "4"}, 4},
		{"flag over environment", []string{"--config", file, "--size", "5"}, map[string]string{"WEIR_SIZE": "4"}, 5},
		{"file named by the environment", nil, map[string]string{"WEIR_CONFIG": file}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &sample{Size: 1}
			if err := Load("x", tt.args, func(k string) string { return tt.env[k] }, io.Discard, s); err != nil &&
				!strings.Contains(err.Error(), "log-level") {
				t.Fatal(err)
			}
			if s.Size != tt.want {
				t.Errorf("size: got %d, want %d", s.Size, tt.want)
			}
		})
	}
}

func TestTheUsualVariablesYieldToThePrefixedOnes(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": "nats://usual", "DATABASE_URL": "postgres://usual", "WEIR_DATABASE_URL": "postgres://ours"}
	cfg := DefaultConfig()
	if err := Load("x", nil, func(k string) string { return env[k] }, io.Discard, &cfg); err != nil {
		t.Fatal(err)
	}
	if got := cfg.NATSURL.Reveal(); got != "nats://usual" {
		t.Errorf("nats url: got %s", got)
	}
	if got := cfg.DatabaseURL.Reveal(); got != "postgres://ours" {
		t.Errorf("database url: got %s", got)
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	args := []string{"--size", "0", "--log-level", "loud", "--database-conns", "-1"}
	err := Load("x", args, func(string) string { return "" }, io.Discard, &cfg, &sample{})
	for _, want := range []string{"size", "log-level", "database-conns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error: got %v, want one that names %s", err, want)
		}
	}
}

func TestBadInputIsNamed(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for name, tt := range map[string]struct {
		args   []string
		getenv func(string) string
		want   string
	}{
		"unknown flag":        {[]string{"--nonsense"}, none, "nonsense"},
		"argument":            {[]string{"nonsense"}, none, "nonsense"},
		"environment":         {nil, func(k string) string { return map[string]string{"WEIR_SIZE": "big"}[k] }, "WEIR_SIZE"},
		"file that is absent": {[]string{"--config", "/nonexistent/file"}, none, "/nonexistent/file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Load("x", tt.args, tt.getenv, io.Discard, &sample{Size: 1})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error: got %v, want one that names %s", err, tt.want)
			}
		})
	}
}

func TestPrintConfigShowsWhatIsInEffectWithoutSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{"--print-config", "--size", "7", "--embedding-api-key", "hunter2"}
	err := Load("x", args, func(string) string { return "" }, &out, &sample{})
	if !errors.Is(err, ErrPrinted) {
		t.Fatalf("error: got %v, want ErrPrinted", err)
	}
	if want := "embedding-api-key redacted\nsize 7\n"; out.String() != want {
		t.Errorf("printed: got %q, want %q", out.String(), want)
	}
}

func TestASignalCancelsWithTheCauseStopping(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var cause error
	err := run(t.Context(), slog.New(slog.DiscardHandler), time.Minute, signals, func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("clean stop: got %v, want nil", err)
	}
	if !errors.Is(cause, ErrStopping) {
		t.Errorf("cause: got %v, want ErrStopping", cause)
	}
}

func TestWorkThatDoesNotEndIsLeftAfterTheGraceTime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grace   time.Duration
		signals int
	}{"grace over": {time.Millisecond, 1}, "second signal": {time.Hour, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals := make(chan os.Signal, tt.signals)
			for range tt.signals {
				signals <- syscall.SIGTERM
			}
			release := make(chan struct{})
			defer close(release)
			err := run(t.Context(), slog.New(slog.DiscardHandler), tt.grace, signals, func(context.Context) error {
				<-release
				return nil
			})
			if !errors.Is(err, ErrGrace) {
				t.Errorf("error: got %v, want ErrGrace", err)
			}
		})
	}
}

func TestAFailureOrPanicOfTheWorkIsTheError(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, work := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return boom },
		"panic": func(context.Context) error { panic(boom) },
	} {
		err := run(t.Context(), slog.New(slog.DiscardHandler), time.Second, nil, work)
		if err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%s: got %v, want boom", name, err)
		}
	}
}

func TestReadyzNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := &Health{}
	down := true
	h.Check("nats", func(context.Context) error {
		if down {
			return errors.New("DISCONNECTED")
		}
		return nil
	})
	expect := func(want int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.Handler(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != want || !strings.Contains(w.Body.String(), text) {
			t.Errorf("readyz: got %d %s, want %d with %q", w.Code, w.Body, want, text)
		}
	}
	expect(503, "starting")
	h.Ready()
	expect(503, "DISCONNECTED")
	down = false
	expect(200, `"ready":true`)
	h.NotReady()
	expect(503, "stopping")
}

func TestMainRunsTheWorkAndMetricsAreServed(t *testing.T) {
	t.Parallel()
	var out, logs bytes.Buffer
	std := stdio{
		args: []string{"--http-addr", "127.0.0.1:0", "--size", "2", "--log-format", "json"}, out: &out, errOut: &logs,
		getenv: func(string) string { return "" },
	}
	var metrics string
	code := runMain(t.Context(), "x", &sample{}, std, func(ctx context.Context, p *Process, s *sample) error {
		counter, err := p.Telemetry.Meters.Meter("x").Int64Counter("weir_x_things")
		if err != nil {
			return err
		}
		counter.Add(ctx, int64(s.Size))
		w := httptest.NewRecorder()
		p.Telemetry.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		metrics = w.Body.String()
		return nil
	})
	if code != ExitOK {
		t.Errorf("exit code: got %d, want %d; %s", code, ExitOK, &logs)
	}
	if !strings.Contains(metrics, "weir_x_things_total") {
		t.Errorf("metrics lack the counter: %.300s", metrics)
	}
	for name, args := range map[string][]string{"bad settings": {"--size", "0"}, "unknown flag": {"--nope"}} {
		std.args = args
		if code := runMain(t.Context(), "x", &sample{}, std, nil); code != ExitUsage {
			t.Errorf("%s: exit code: got %d, want %d", name, code, ExitUsage)
		}
	}
}

func TestReconnectDelayIsBounded(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{-1, 0, 1, 5, 1000} {
		if got := reconnectDelay(rounds); got < 50*time.Millisecond || got > 2*time.Second {
			t.Errorf("delay after %d rounds: got %s, want 50ms to 2s", rounds, got)
		}
	}
}
