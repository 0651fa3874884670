package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

func rpcEnv(t *testing.T, opts ServiceOptions, endpoints ...Endpoint) (*nats.Conn, *Service) {
	t.Helper()
	s := startServer(t, &server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	nc := connect(t, s.ClientURL())
	svc, err := NewService(nc, ServiceInfo{Name: "weir-test", Version: "0.1.0"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range endpoints {
		if err := svc.AddEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := svc.Stop(ctxOf(t)); err != nil {
			t.Error(err)
		}
	})
	return nc, svc
}

func codeOf(err error) messages.Code {
	if e, ok := messages.AsError(err); ok {
		return e.Code
	}
	return ""
}

func TestCallsAndTheirErrors(t *testing.T) {
	t.Parallel()
	type in struct{ Want string }
	log := &logged{}
	nc, _ := rpcEnv(t, ServiceOptions{Telemetry: Telemetry{Log: log.logger()}}, Endpoint{
		Name: "op", Subject: "weir.rpc.*.*.op", Metadata: map[string]string{"schema": "{}"},
		Handler: func(ctx context.Context, r Request) (any, error) {
			var q in
			if err := json.Unmarshal(r.Body, &q); err != nil {
				return nil, messages.Invalid("", "bad json")
			}
			switch q.Want {
			case "invalid":
				return nil, messages.Invalid("topK", "too large")
			case "panic":
				panic("document text")
			case "panic of a helper":
				var g guard.Group
				g.Go(func() error { panic("document text") })
				return nil, fmt.Errorf("work together: %w", g.Wait())
			case "panic of the reply":
				return unencodable{}, nil
			case "secret":
				return nil, errors.New("password=hunter2")
			case "outage":
				return nil, Pause(errors.New("postgres is down"), 0)
			case "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			case "big":
				return strings.Repeat("x", 2<<20), nil
			case "where":
				return []string{r.Tenant, r.Scope, r.ID}, nil
			case "none":
				return nil, nil
			}
			return nil, errors.New("no such case")
		},
	})
	call := func(want string, h Header, out any) error {
		ctx := ctxOf(t)
		if want == "slow" { // that one is to come too late
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Second)
			defer cancel()
		}
		return Call(ctx, nc, messages.RPCSubject("acme", "docs", "op"), h, in{want}, out)
	}
	var where []string
	if err := call("where", Header{messages.HeaderRequestID: "r-1"}, &where); err != nil || strings.Join(where, " ") != "acme docs r-1" {
		t.Errorf("%v %v", where, err)
	}
	if err := call("none", nil, nil); err != nil {
		t.Error(err)
	}
	for want, code := range map[string]messages.Code{
		"invalid": messages.CodeValidation, "secret": messages.CodeInternal,
		"panic": messages.CodeInternal, "panic of a helper": messages.CodeInternal, "panic of the reply": messages.CodeInternal,
		"outage": messages.CodeUnavailable, "slow": messages.CodeDeadlineExceeded, "big": messages.CodeResponseTooLarge,
	} {
		err := call(want, nil, nil)
		if codeOf(err) != code {
			t.Errorf("%s: %v, want %s", want, err, code)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "document text")) {
			t.Errorf("%s tells too much: %v", want, err)
		}
	}
	if e, ok := messages.AsError(call("invalid", nil, nil)); !ok || e.Field != "topK" {
		t.Errorf("field %+v", e)
	}
	if text := log.String(); strings.Count(text, "endpoint panicked") != 3 || strings.Count(text, "rpc_test.go") < 3 {
		t.Errorf("want three panics in the log, each with its stack:\n%s", text)
	}
}

// unencodable panics when it is encoded.
type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { panic("document text") }

func TestDeadlineHeader(t *testing.T) {
	t.Parallel()
	until := make(chan time.Time, 1)
	nc, _ := rpcEnv(t, ServiceOptions{MaxDeadline: time.Hour}, Endpoint{
		Name: "op", Subject: "weir.internal.op",
		Handler: func(ctx context.Context, _ Request) (any, error) {
			d, _ := ctx.Deadline()
			until <- d
			return nil, nil
		},
	})
	raw := func(deadline string) messages.Envelope {
		t.Helper()
		m := nats.NewMsg("weir.internal.op")
		if deadline != "" {
			m.Header[messages.HeaderDeadline] = []string{deadline}
		}
		reply, err := nc.RequestMsg(m, testkit.Patience)
		if err != nil {
			t.Fatal(err)
		}
		var env messages.Envelope
		if err := json.Unmarshal(reply.Data, &env); err != nil || env.RequestID == "" {
			t.Fatalf("reply %s: %v", reply.Data, err)
		}
		return env
	}
	for deadline, want := range map[string]time.Duration{"": 10 * time.Second, "70000": 70 * time.Second, "99999999999": time.Hour} {
		began := time.Now()
		if env := raw(deadline); env.Code != messages.CodeSuccess {
			t.Fatal(env)
		}
		if got := <-until; got.Before(began.Add(want)) || got.After(time.Now().Add(want)) {
			t.Errorf("deadline %q leaves %v, want %v", deadline, got.Sub(began), want)
		}
	}
	if env := raw("soon"); env.Code != messages.CodeValidation || env.Field != messages.HeaderDeadline {
		t.Error(env)
	}
	if env := raw("0"); env.Code != messages.CodeDeadlineExceeded {
		t.Error(env)
	}
}

func TestOverloadIsToldAtOnce(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var entered atomic.Int64
	block := func(ctx context.Context, _ Request) (any, error) {
		entered.Add(1)
		<-hold
		return nil, nil
	}
	nc, _ := rpcEnv(t, ServiceOptions{MaxConcurrent: 4}, Endpoint{Name: "plain", Subject: "weir.internal.plain", Handler: block},
		Endpoint{Name: "urgent", Subject: "weir.internal.urgent", Handler: block, Priority: true})
	var wg sync.WaitGroup
	send := func(subject string) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := Call(ctxOf(t), nc, subject, nil, nil, nil); err != nil {
				t.Error(err)
			}
		}()
	}
	for range 3 {
		send("weir.internal.plain")
	}
	eventually(t, "three under way", func() bool { return entered.Load() == 3 })
	reply, err := nc.Request("weir.internal.plain", nil, testkit.Patience) // it comes though none of the others does
	if err != nil || !strings.Contains(string(reply.Data), "OVERLOADED") || natsCarrier(reply.Header).Get(messages.HeaderRetryAfter) != "1" {
		t.Errorf("reply %+v, %v", reply, err)
	}
	send("weir.internal.urgent") // the last slot is kept for it
	eventually(t, "the urgent one got in", func() bool { return entered.Load() == 4 })
	close(hold)
	wg.Wait()
}

func TestAPatientCallIsMadeAgain(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var entered atomic.Int64
	nc, svc := rpcEnv(t, ServiceOptions{MaxConcurrent: 1}, Endpoint{Name: "op", Subject: "weir.internal.op", Priority: true, Handler: func(context.Context, Request) (any, error) {
		if entered.Add(1) == 1 {
			<-hold
		}
		return 5, nil
	}})
	first := make(chan error, 1)
	go func() { first <- Call(ctxOf(t), nc, "weir.internal.op", nil, nil, nil) }()
	eventually(t, "one under way", func() bool { return entered.Load() == 1 })
	if err := Call(ctxOf(t), nc, "weir.internal.op", nil, nil, nil); codeOf(err) != messages.CodeOverloaded {
		t.Errorf("an impatient one: got %v, want OVERLOADED", err)
	}
	gone, leave := context.WithCancel(ctxOf(t))
	left := make(chan error, 1)
	go func() { left <- Client{NC: nc, Patient: true}.Call(gone, "weir.internal.op", nil, nil, nil) }()
	refused := func(n int64) {
		t.Helper()
		eventually(t, "a refusal", func() bool { return svc.stats["op"].refused.Load() == n })
	}
	refused(2)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("one that is called off: got %v", err)
	}
	patient := make(chan error, 1)
	var got int
	go func() { patient <- Client{NC: nc, Patient: true}.Call(ctxOf(t), "weir.internal.op", nil, nil, &got) }()
	refused(3)
	close(hold)
	for _, c := range []chan error{first, patient} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	if got != 5 {
		t.Errorf("the patient one got %d", got)
	}
}

func TestAPatientCallWithoutTheTimeIsToldAtOnce(t *testing.T) {
	t.Parallel()
	hold, entered := make(chan struct{}), make(chan struct{})
	nc, _ := rpcEnv(t, ServiceOptions{MaxConcurrent: 1, RetryAfter: time.Hour}, Endpoint{Name: "op", Subject: "weir.internal.op", Priority: true, Handler: func(context.Context, Request) (any, error) {
		close(entered)
		<-hold
		return nil, nil
	}})
	first := make(chan error, 1)
	go func() { first <- Call(ctxOf(t), nc, "weir.internal.op", nil, nil, nil) }()
	<-entered
	if err := (Client{NC: nc, Patient: true}).Call(ctxOf(t), "weir.internal.op", nil, nil, nil); codeOf(err) != messages.CodeOverloaded {
		t.Errorf("got %v, want OVERLOADED", err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestStopWaitsForRequestsUnderWay(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var entered, done atomic.Int64
	nc, svc := rpcEnv(t, ServiceOptions{}, Endpoint{Name: "op", Subject: "weir.internal.op", Handler: func(context.Context, Request) (any, error) {
		entered.Add(1)
		<-release
		done.Add(1)
		return "ok", nil
	}})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := Call(ctxOf(t), nc, "weir.internal.op", nil, nil, nil); err != nil {
				failed.Add(1)
			}
		}()
	}
	eventually(t, "all under way", func() bool { return entered.Load() == 20 })
	stopped := make(chan error, 1)
	go func() { stopped <- svc.Stop(ctxOf(t)) }()
	eventually(t, "it has begun to stop", func() bool {
		svc.mu.Lock()
		defer svc.mu.Unlock()
		return svc.stopped
	})
	select {
	case err := <-stopped:
		t.Errorf("Stop returned (%v) with %d of 20 done", err, done.Load())
	default:
	}
	close(release)
	if err := <-stopped; err != nil || done.Load() != 20 {
		t.Errorf("Stop returned (%v) with %d of 20 done", err, done.Load())
	}
	wg.Wait()
	if failed.Load() != 0 {
		t.Errorf("%d callers got no reply", failed.Load())
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	nc, svc := rpcEnv(t, ServiceOptions{})
	err := Client{NC: nc}.Call(ctxOf(t), "weir.internal.late", nil, nil, nil)
	if codeOf(err) != messages.CodeUnavailable || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("error %v", err)
	}
	got := make(chan error, 1)
	go func() {
		got <- Client{NC: nc, RetryFor: testkit.Patience}.Call(ctxOf(t), "weir.internal.late", nil, nil, nil)
	}()
	time.Sleep(50 * time.Millisecond) // the call may or may not have met nobody: both must work
	if err := svc.AddEndpoint(Endpoint{Name: "late", Subject: "weir.internal.late", Handler: func(context.Context, Request) (any, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("a service that came in time: %v", err)
	}
}
