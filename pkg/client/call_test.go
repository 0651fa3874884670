package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// typedCalls makes a call of every operation.
func typedCalls(ctx context.Context, c *Client) map[string]func() error {
	k := c.KB("kb1")
	drop := func(_ any, err error) error { return err }
	return map[string]func() error{
		messages.OpSubmit:      func() error { return drop(k.Submit(ctx, messages.Submit{DocID: "d"})) },
		messages.OpDelete:      func() error { return drop(k.DeleteDocument(ctx, messages.Delete{DocID: "d"})) },
		messages.OpKBCreate:    func() error { return drop(c.CreateKB(ctx, messages.CreateKB{KnowledgeBaseName: "kb1"})) },
		messages.OpKBList:      func() error { return drop(c.ListKBs(ctx, messages.Page{MaxResults: 3})) },
		messages.OpKBGet:       func() error { return drop(k.Get(ctx)) },
		messages.OpKBUpdate:    func() error { return drop(k.Update(ctx, messages.UpdateKB{})) },
		messages.OpKBDelete:    func() error { return k.Delete(ctx) },
		messages.OpDocGet:      func() error { return drop(k.Document(ctx, messages.DocumentRef{DocID: "d"})) },
		messages.OpDocList:     func() error { return drop(k.ListDocuments(ctx, messages.ListDocuments{})) },
		messages.OpDocChunks:   func() error { return drop(k.ListChunks(ctx, messages.ListChunks{DocID: "d"})) },
		messages.OpChunkUpdate: func() error { return drop(k.UpdateChunk(ctx, messages.UpdateChunk{DocID: "d"})) },
		messages.OpRetrieve:    func() error { return drop(k.Retrieve(ctx, messages.RetrieveRequest{})) },
		messages.OpBatch:       func() error { return drop(k.BatchRetrieve(ctx, []messages.RetrieveRequest{{}})) },
		messages.OpSearch:      func() error { return drop(k.Search(ctx, messages.RetrieveRequest{})) },
		messages.OpJobStart:    func() error { return drop(c.StartJob(ctx, messages.StartJob{KnowledgeBaseName: "kb1"})) },
		messages.OpJobList:     func() error { return drop(c.ListJobs(ctx, messages.ListJobs{})) },
		messages.OpJobGet:      func() error { return drop(c.Job(ctx, 1)) },
		messages.OpJobPause:    func() error { return drop(c.PauseJob(ctx, 1)) },
		messages.OpJobResume:   func() error { return drop(c.ResumeJob(ctx, messages.ResumeJob{ID: 1})) },
		messages.OpJobCancel:   func() error { return drop(c.CancelJob(ctx, 1)) },
		messages.OpJobApprove:  func() error { return drop(c.ApproveJob(ctx, messages.ApproveJob{ID: 1})) },
		messages.OpJobRollback: func() error { return drop(c.RollbackJob(ctx, 1)) },
		messages.OpDLQList:     func() error { return drop(c.ListDeadLetters(ctx, messages.ListDeadLetters{})) },
		messages.OpDLQGet:      func() error { return drop(c.DeadLetter(ctx, 1)) },
		messages.OpDLQReplay:   func() error { return c.ReplayDeadLetter(ctx, 1) },
		messages.OpDLQDiscard:  func() error { return c.DiscardDeadLetter(ctx, 1) },
	}
}

// Each call asks its own subject with a body of the operation's type and takes its reply.
func TestEveryOperationHasATypedCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	calls := typedCalls(within(t, testkit.Patience), b.c)
	for _, op := range messages.Operations() {
		call, ok := calls[op.Name]
		if !ok {
			t.Errorf("%s has no typed call", op.Name)
			continue
		}
		scope, wanted := "kb1", reflect.TypeOf(op.Request)
		if op.TenantScoped {
			scope = messages.TenantScope
		}
		var got bus.Request
		serve(t, b.nc, op.Name, func(_ context.Context, r bus.Request) (any, error) {
			got = r
			return op.Reply, messages.DecodeStrict(r.Body, reflect.New(wanted).Interface())
		})
		if err := call(); err != nil {
			t.Errorf("%s: %v", op.Name, err)
		}
		if got.Scope != scope || got.Tenant != "t" {
			t.Errorf("%s: asked %s, want scope %s", op.Name, got.Subject, scope)
		}
	}
}

func TestSeveralKnowledgeBasesHaveASubjectOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	scope := ""
	serve(t, b.nc, messages.OpRetrieve, func(_ context.Context, r bus.Request) (any, error) {
		scope = r.Scope
		return messages.RetrieveReply{}, nil
	})
	if _, err := b.c.RetrieveMulti(within(t, testkit.Patience), messages.RetrieveRequest{KnowledgeBaseNames: []string{"a", "b"}}); err != nil || scope != messages.AllScope {
		t.Errorf("got %v from scope %q, want %s", err, scope, messages.AllScope)
	}
}

func TestErrorsOfAServiceAreTyped(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	serve(t, b.nc, messages.OpKBGet, func(context.Context, bus.Request) (any, error) {
		return nil, &messages.Error{Code: messages.CodeKBNotFound, Message: "there is none", Field: "knowledgeBaseName"}
	})
	_, err := b.c.KB("kb1").Get(within(t, testkit.Patience))
	wantCode(t, "a refusal", err, messages.CodeKBNotFound, "knowledgeBaseName")
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no error of the connection in it", err)
	}
}

func TestStrangeRepliesAreErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	for name, body := range map[string]string{
		"junk": `hello`, "no code": `{}`, "no data": `{"code":"SUCCESS"}`, "other data": `{"code":"SUCCESS","data":[1]}`,
	} {
		sub, err := b.nc.Subscribe(messages.RPCSubject("t", "kb1", messages.OpKBGet), func(m *nats.Msg) { _ = m.Respond([]byte(body)) })
		if err != nil {
			t.Fatal(err)
		}
		if err := b.nc.Flush(); err != nil {
			t.Fatal(err)
		}
		_, err = b.c.KB("kb1").Get(within(t, testkit.Patience))
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
		if strange := name == "junk" || name == "no code"; strange != errors.Is(err, bus.ErrNoEnvelope) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNamesNeverBecomeOtherSubjects(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	ctx := within(t, testkit.Patience)
	for _, name := range []string{"", "a.b", "*", ">", "UPPER", "a b", "_all._"} {
		_, err := b.c.KB(name).Get(ctx)
		wantCode(t, "get "+name, err, messages.CodeValidation, "knowledgeBaseName")
		_, err = b.c.KB(name).Publish(ctx, Document{Submit: messages.Submit{DocID: "d", Text: text("x")}})
		wantCode(t, "publish to "+name, err, messages.CodeValidation, "knowledgeBaseName")
		_, err = b.c.KB(name).Watch(func(messages.Event) {})
		wantCode(t, "watch "+name, err, messages.CodeValidation, "knowledgeBaseName")
	}
	_, err := New(b.nc, "a.b", Options{})
	wantCode(t, "tenant", err, messages.CodeValidation, "tenant")
}

func TestTheDeadlineTravels(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	left := make(chan int, 1)
	serve(t, b.nc, messages.OpKBGet, func(_ context.Context, r bus.Request) (any, error) {
		ms, err := strconv.Atoi(r.Header[messages.HeaderDeadline])
		left <- ms
		return messages.KBInfo{}, err
	})
	for _, c := range []struct {
		what     string
		opts     Options
		deadline time.Duration // 0: none
		atMost   time.Duration
	}{
		{"that of the context", Options{}, 25 * time.Second, 25 * time.Second},
		{"ten seconds without one", Options{}, 0, 10 * time.Second},
		{"the client's, where it is sooner", Options{Timeout: 3 * time.Second}, 25 * time.Second, 3 * time.Second},
		{"the client's without one", Options{Timeout: 20 * time.Second}, 0, 20 * time.Second},
	} {
		ctx := t.Context()
		if c.deadline > 0 {
			ctx = within(t, c.deadline)
		}
		if _, err := b.client(c.opts).KB("kb1").Get(ctx); err != nil {
			t.Fatal(err)
		}
		if ms := time.Duration(<-left) * time.Millisecond; ms > c.atMost || ms <= 0 || c.atMost > 3*time.Second && ms < 4*time.Second {
			t.Errorf("%s: got %s, want up to %s", c.what, ms, c.atMost)
		}
	}
}

func TestAServiceThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{RetryFor: testkit.Patience})
	before, answered := b.c.nc.Stats().OutMsgs, make(chan error, 1)
	go func() {
		_, err := b.c.KB("kb1").Get(t.Context())
		answered <- err
	}()
	testkit.Eventually(t, func() error { // a request has gone by unanswered
		if b.c.nc.Stats().OutMsgs == before {
			return errors.New("nothing was asked")
		}
		return nil
	})
	serve(t, b.nc, messages.OpKBGet, func(context.Context, bus.Request) (any, error) { return messages.KBInfo{}, nil })
	select {
	case err := <-answered:
		if err != nil {
			t.Errorf("got %v, want the answer of the service that came", err)
		}
	case <-time.After(testkit.Patience):
		t.Error("no answer")
	}
}

func TestNoServiceAndNoAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{RetryFor: -1})
	_, err := b.c.KB("kb1").Get(within(t, testkit.Patience))
	wantCode(t, "no service", err, messages.CodeUnavailable, "")
	if !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("no service: got %v, want the cause in it", err)
	}
	if _, err := b.nc.Subscribe("weir.rpc.t.kb1.>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	_, err = b.c.KB("kb1").Get(within(t, 200*time.Millisecond))
	wantCode(t, "no answer", err, messages.CodeDeadlineExceeded, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: got %v, want the cause in it", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.c.KB("kb1").Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestOptionsOfACallAreHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	var got bus.Request
	serve(t, b.nc, messages.OpSubmit, func(_ context.Context, r bus.Request) (any, error) {
		got = r
		return messages.SubmitReply{}, nil
	})
	_, err := b.c.KB("kb1").Submit(within(t, testkit.Patience), messages.Submit{DocID: "d"}, WithIdempotencyKey("key-1"), WithRequestID("req-1"))
	if err != nil || got.Header[messages.HeaderIdempotencyKey] != "key-1" || got.ID != "req-1" {
		t.Errorf("got %v, %v and id %q, want key-1 and req-1", err, got.Header, got.ID)
	}
}

func TestListingsAreGoneThroughPageByPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	asked := 0
	serve(t, b.nc, messages.OpDocList, func(_ context.Context, r bus.Request) (any, error) {
		asked++
		var in messages.ListDocuments
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return nil, err
		}
		n, _ := strconv.Atoi(in.NextToken)
		if n == 4 && in.Status == messages.StatusFailed {
			return nil, messages.Errorf(messages.CodeInternal, "broken")
		}
		out := messages.DocumentList{Documents: []messages.DocumentInfo{{DocID: fmt.Sprint(n)}, {DocID: fmt.Sprint(n + 1)}}}
		if n < 4 {
			out.NextToken = strconv.Itoa(n + 2)
		}
		return out, nil
	})
	list := func(in messages.ListDocuments, stop string) (ids string, err error) {
		for d, e := range b.c.KB("kb1").Documents(within(t, testkit.Patience), in) {
			if err = e; err != nil || d.DocID == stop {
				return ids, err
			}
			ids += d.DocID
		}
		return ids, err
	}
	for _, c := range []struct {
		in         messages.ListDocuments
		stop, want string
		asked      int
		fails      bool
	}{
		{messages.ListDocuments{}, "", "012345", 3, false},
		{messages.ListDocuments{Page: messages.Page{NextToken: "2"}}, "", "2345", 2, false},
		{messages.ListDocuments{}, "3", "012", 2, false},
		{messages.ListDocuments{Status: messages.StatusFailed}, "", "0123", 3, true},
	} {
		asked = 0
		if got, err := list(c.in, c.stop); got != c.want || asked != c.asked || (err != nil) != c.fails {
			t.Errorf("%+v: got %q and %v in %d requests, want %q in %d", c.in, got, err, asked, c.want, c.asked)
		}
	}
}

func TestAClientIsForManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	serve(t, b.nc, messages.OpDocGet, func(_ context.Context, r bus.Request) (any, error) {
		var in messages.DocumentRef
		return messages.DocumentInfo{DocID: in.DocID, Title: r.Scope}, json.Unmarshal(r.Body, &in)
	})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			kb, id := fmt.Sprint("kb", i%5), fmt.Sprint("d", i)
			d, err := b.c.KB(kb).Document(within(t, testkit.Patience), messages.DocumentRef{DocID: id})
			if err != nil || d.Title != kb {
				t.Errorf("%s: got %+v, %v", id, d, err)
			}
		})
	}
	wg.Wait()
}

func text(s string) *string { return &s }
