package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// actAsWeir makes the test binary behave as weir, for tests that need a process of it.
const actAsWeir = "WEIR_TEST_ACT_AS_WEIR"

func TestMain(m *testing.M) {
	if os.Getenv(actAsWeir) != "" {
		os.Exit(Main(System()))
	}
	goleak.VerifyTestMain(m, testkit.UploadLeak())
}

// line runs a command line in this process.
func line(env map[string]string, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Main(IO{
		Args: args, In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Getenv: func(k string) string { return env[k] },
	})
	return code, stdout.String(), stderr.String()
}

func TestWrongCommandLinesExitWithUsage(t *testing.T) {
	t.Parallel()
	env := map[string]string{"WEIR_HOME": t.TempDir()}
	for _, args := range [][]string{
		{"nonsense"},
		{"status", "--nonsense"},
		{"status", "argument"},
		{"status", "--tenant", "Not A Name"},
		{"status", "--timeout", "-1s"},
		{"up", "--only", "nonsense"},
		{"up", "--log-level", "loud"},
		{"up", "--config", "/nonexistent"},
	} {
		if code, _, errOut := line(env, args...); code != ExitUsage || !strings.HasPrefix(errOut, "weir: ") {
			t.Errorf("%v: got %d, %q, want %d and a message", args, code, errOut, ExitUsage)
		}
		code, _, errOut := line(env, append(slices.Clone(args), "--json")...)
		if e := errorOf(t, errOut); code != ExitUsage || e.Exit != ExitUsage || e.Message == "" {
			t.Errorf("%v --json: got %d, %q, want an object with the exit code %d", args, code, errOut, ExitUsage)
		}
	}
}

// jsonError is an error as --json shows it.
type jsonError struct {
	Message string
	Exit    int
}

func errorOf(t *testing.T, text string) jsonError {
	t.Helper()
	var e struct{ Error jsonError }
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Errorf("%q is no error in JSON: %v", text, err)
	}
	return e.Error
}

func TestEveryCommandIsDescribedAndHelpListsTheExitCodes(t *testing.T) {
	t.Parallel()
	for _, command := range commands() {
		c := command(&Session{})
		if c.Short == "" || c.Use == "" {
			t.Errorf("%q has no description", c.Use)
		}
	}
	code, out, _ := line(nil, "help")
	if code != ExitOK || !strings.Contains(out, "130  interrupted") || !strings.Contains(out, "status") {
		t.Errorf("help: got %d\n%s", code, out)
	}
}

func TestWithoutARunTheErrorSaysHowToStartOne(t *testing.T) {
	t.Parallel()
	env := map[string]string{"WEIR_HOME": t.TempDir()}
	for _, args := range [][]string{{"status"}, {"migrate"}} {
		if code, _, errOut := line(env, args...); code != ExitUnavailable || !strings.Contains(errOut, "weir up") {
			t.Errorf("%v: got %d, %q, want %d and `weir up`", args, code, errOut, ExitUnavailable)
		}
	}
	code, _, errOut := line(env, "status", "--json")
	if e := errorOf(t, errOut); e.Exit != code || e.Message == "" {
		t.Errorf("--json: got %q, want an object with the exit code %d", errOut, code)
	}
}

func TestPrintConfigShowsTheEnvironmentAndHidesSecrets(t *testing.T) {
	t.Parallel()
	env := map[string]string{"WEIR_HOME": t.TempDir(), "DATABASE_URL": "postgres://u:hunter2@h/d", "WEIR_GRACE": "7s"}
	code, out, errOut := line(env, "up", "--print-config", "--log-format", "json")
	if code != ExitOK || strings.Contains(out, "hunter2") {
		t.Fatalf("got %d, %s%s", code, out, errOut)
	}
	for _, want := range []string{"grace 7s", "log-format json", "database-url postgres://redacted@h/d"} {
		if !strings.Contains(out, want) {
			t.Errorf("settings lack %q:\n%s", want, out)
		}
	}
}

// session is a session on a server of its own, with a service that gives the answers.
func session(t *testing.T, answer func(*nats.Msg)) *Session {
	t.Helper()
	server, connect := testkit.NATSListening(t)
	if answer != nil {
		nc := connect()
		if _, err := nc.Subscribe(messages.RPCSubject("default", "kb1", "get"), answer); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	s := &Session{
		IO:     IO{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }},
		Tenant: "default", Timeout: testkit.Patience, natsURL: server.ClientURL(),
	}
	t.Cleanup(s.close)
	return s
}

func respond(t *testing.T, body string) func(*nats.Msg) {
	return func(m *nats.Msg) {
		if err := m.Respond([]byte(body)); err != nil {
			t.Error(err)
		}
	}
}

func TestRequestDecodesTheDataOfAnAnswer(t *testing.T) {
	t.Parallel()
	var got *nats.Msg
	s := session(t, func(m *nats.Msg) {
		got = m
		respond(t, `{"code":"SUCCESS","message":"","requestId":"r","data":{"size":3}}`)(m)
	})
	var out struct{ Size int }
	if err := s.Request(t.Context(), "kb1", "get", map[string]int{"a": 1}, &out); err != nil {
		t.Fatal(err)
	}
	if out.Size != 3 || string(got.Data) != `{"a":1}` || got.Header.Get(messages.HeaderDeadline) == "" {
		t.Errorf("got %+v from %s with %v, want size 3, the body and a deadline", out, got.Data, got.Header)
	}
}

func TestRefusalsAndStrangeAnswersHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		want int
		says string
	}{
		"refused":   {`{"code":"VALIDATION_ERROR","message":"must be positive","field":"k"}`, ExitRejected, "k: must be positive"},
		"not found": {`{"code":"KNOWLEDGE_BASE_NOT_FOUND","message":"no kb1"}`, ExitNotFound, "no kb1"},
		"overload":  {`{"code":"OVERLOADED","message":"busy"}`, ExitUnavailable, "busy"},
		"late":      {`{"code":"DEADLINE_EXCEEDED","message":"late"}`, ExitTimeout, "late"},
		"junk":      {`hello`, ExitFailed, "not one of Weir"},
		"no data":   {`{"code":"SUCCESS"}`, ExitFailed, "no data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session(t, respond(t, tt.body))
			var out map[string]any
			err := s.Request(t.Context(), "kb1", "get", nil, &out)
			if err == nil || exitOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v with exit code %d, want %q and %d", err, exitOf(err), tt.says, tt.want)
			}
		})
	}
}

func TestAServiceThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := session(t, nil)
	nc, err := s.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(400*time.Millisecond, func() {
		if _, err := nc.Subscribe(messages.RPCSubject("default", "kb1", "get"), respond(t, `{"code":"SUCCESS"}`)); err != nil {
			t.Error(err)
		}
	})
	defer late.Stop()
	if err := s.Request(t.Context(), "kb1", "get", nil, nil); err != nil {
		t.Errorf("got %v, want the answer of the service that came", err)
	}
}

func TestNoServiceAndNoAnswerAreTold(t *testing.T) {
	t.Parallel()
	s := session(t, func(*nats.Msg) {})
	s.Timeout = 300 * time.Millisecond
	if err := s.Request(t.Context(), "kb1", "get", nil, nil); exitOf(err) != ExitTimeout {
		t.Errorf("no answer: got %v with %d, want %d", err, exitOf(err), ExitTimeout)
	}
	s.Timeout = testkit.Patience
	err := s.Request(t.Context(), "kb1", "absent", nil, nil)
	if exitOf(err) != ExitUnavailable || !strings.Contains(fmt.Sprint(err), "weir status") {
		t.Errorf("no service: got %v with %d, want %d and what to do", err, exitOf(err), ExitUnavailable)
	}
	s.nc.Close()
	s.nc, s.natsURL = nil, "nats://127.0.0.1:1"
	if err := s.Request(t.Context(), "kb1", "get", nil, nil); exitOf(err) != ExitUnavailable {
		t.Errorf("no server: got %v with %d, want %d", err, exitOf(err), ExitUnavailable)
	}
}

func TestExitCodesOfOtherErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("x"), ExitFailed},
		{Usagef("x"), ExitUsage},
		{context.Canceled, ExitInterrupted},
		{errors.Join(context.Canceled, context.DeadlineExceeded), ExitInterrupted}, // of what was told to stop
		{fmt.Errorf("x: %w", context.DeadlineExceeded), ExitTimeout},
		{messages.Errorf(messages.CodeInternal, "x"), ExitFailed},
	} {
		if got := exitOf(tt.err); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}
