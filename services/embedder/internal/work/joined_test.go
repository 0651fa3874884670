package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/services/embedder/internal/work"
)

// gated holds its calls until they are let go, refuses texts that begin with "bad", breaks over "poison", and fails after
// the text "end".
type gated struct {
	mu    sync.Mutex
	calls [][]string
	began chan struct{}
	gate  chan struct{}
}

func (g *gated) Embed(_ context.Context, _ embedding.Space, _ embedding.Lane, texts []string) (embedding.Result, error) {
	g.mu.Lock()
	g.calls = append(g.calls, texts)
	g.mu.Unlock()
	g.began <- struct{}{}
	<-g.gate
	r := embedding.Result{Vectors: make([][]float32, len(texts)), Rejected: map[int]error{}, Usage: embedding.Usage{Tokens: 10 * len(texts)}}
	for i, text := range texts {
		switch text {
		case "end":
			return r, embedding.ErrUnavailable
		case "poison":
			return r, embedding.ErrBadAnswer
		}
		if strings.HasPrefix(text, "bad") {
			r.Rejected[i] = fmt.Errorf("refused %s", text)
			continue
		}
		r.Vectors[i] = embedding.Fake{}.Vector(text)
	}
	return r, nil
}

// usual are the limits of most servers.
func usual(embedding.Space) embedding.BatchLimits { return embedding.DefaultBatchLimits() }

type answered struct {
	result embedding.Result
	err    error
}

// joined lets one call occupy the embedder and sends the others meanwhile.
func joined(t *testing.T, g *gated, calls ...[]string) []answered {
	t.Helper()
	j := work.NewJoined(g, 1, usual)
	out := make([]answered, len(calls))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := j.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, []string{"first"}); err != nil {
			t.Error(err)
		}
	})
	<-g.began
	for i, texts := range calls {
		wg.Go(func() {
			out[i].result, out[i].err = j.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, texts)
		})
	}
	for work.Waiting(j, embedding.DefaultSpace()) < len(calls) {
		time.Sleep(time.Millisecond) // a poll: nothing tells that a call waits
	}
	close(g.gate)
	<-g.began
	wg.Wait()
	return out
}

func newGated() *gated { return &gated{began: make(chan struct{}, 10), gate: make(chan struct{})} }

func TestMessagesShareARequestAndEachGetsItsOwn(t *testing.T) {
	g := newGated()
	out := joined(t, g, []string{"a", "bad b", "c"}, []string{"d"}, []string{"bad e", "f"})
	if len(g.calls) != 2 || len(g.calls[1]) != 6 {
		t.Fatalf("requests: got %v, want the first alone and the others in one", g.calls)
	}
	for i, c := range []struct {
		texts    []string
		rejected string
	}{{[]string{"a", "bad b", "c"}, "map[1:refused bad b]"}, {[]string{"d"}, "map[]"}, {[]string{"bad e", "f"}, "map[0:refused bad e]"}} {
		got := out[i]
		if got.err != nil || fmt.Sprint(got.result.Rejected) != c.rejected || got.result.Usage.Tokens != 10*len(c.texts) {
			t.Errorf("%v: got %v, %v, %d tokens", c.texts, got.result.Rejected, got.err, got.result.Usage.Tokens)
		}
		for k, text := range c.texts {
			if want := (embedding.Fake{}).Vector(text); !strings.HasPrefix(text, "bad") && fmt.Sprint(got.result.Vectors[k]) != fmt.Sprint(want) {
				t.Errorf("vector of %q: got %v, want %v", text, got.result.Vectors[k], want)
			}
		}
	}
}

func TestWhatWasComputedBeforeAnOutageIsKeptByEach(t *testing.T) {
	out := joined(t, newGated(), []string{"a"}, []string{"end"})
	for i, got := range out {
		if !errors.Is(got.err, embedding.ErrUnavailable) || len(got.result.Vectors) != 1 {
			t.Errorf("call %d: got %d vectors, %v, want one place and the outage", i, len(got.result.Vectors), got.err)
		}
	}
}

func TestTextsThatFillARequestAreNotJoined(t *testing.T) {
	t.Parallel()
	g := newGated()
	j := work.NewJoined(g, 4, func(embedding.Space) embedding.BatchLimits { return embedding.BatchLimits{Tokens: 100} })
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := j.Embed(t.Context(), embedding.DefaultSpace(), embedding.Batch, []string{strings.Repeat("many words ", 40)}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 3 {
		<-g.began // all at once, though none has been answered
	}
	close(g.gate)
	wg.Wait()
}

func TestATextThatTheServerBreaksOverFailsItsMessageAlone(t *testing.T) {
	g := newGated()
	out := joined(t, g, []string{"a"}, []string{"poison"}, []string{"b"})
	for i, want := range []error{nil, embedding.ErrBadAnswer, nil} {
		got := out[i]
		if !errors.Is(got.err, want) || want == nil && (got.err != nil || len(got.result.Vectors) != 1) {
			t.Errorf("call %d: got %d vectors, %v, want %v", i, len(got.result.Vectors), got.err, want)
		}
	}
	if len(g.calls) != 5 {
		t.Errorf("requests: got %v, want the first alone, the others in one, then each alone", g.calls)
	}
}
