package conformance_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func TestMain(m *testing.M) {
	parseworker.Main()
	goleak.VerifyTestMain(m, testkit.UploadLeak())
}

// TestConformance runs every case as a subtest of its id. Cases that need no server run without one.
func TestConformance(t *testing.T) {
	s := load(t)
	for _, d := range s.disputed {
		t.Logf("disputed %s: %s", d.ID, d.Reason)
	}
	for _, id := range slices.Sorted(maps.Keys(s.index.Later)) {
		t.Logf("later    %s: %s", id, s.index.Later[id])
	}
	w := newWorld(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the services logged, at the end:\n%s", tail(w.log.String(), 8000))
		}
	})
	for _, c := range s.cases {
		t.Run(c.ID, func(t *testing.T) {
			if !c.Alone {
				t.Parallel()
			}
			r := &run{w: w, c: &c, tenant: w.prepare(t, &c, s.fixtures), saved: map[string][]hit{}, lists: map[string][]string{}}
			for i := range c.Steps {
				r.step(t, i)
			}
		})
	}
}

// run is a case under way.
type run struct {
	w      *world
	c      *testCase
	tenant string
	saved  map[string][]hit    // lists of replies
	lists  map[string][]string // lists of retrievers
	at     string              // the step, for failures
}

func (r *run) step(t testing.TB, i int) {
	t.Helper()
	s := &r.c.Steps[i]
	r.at = fmt.Sprintf("step %d", i+1)
	if s.Note != "" {
		r.at += " (" + s.Note + ")"
	}
	switch {
	case s.Call != nil:
		r.call(t, s.Call)
	case s.Submit != nil:
		r.submit(t, s.Submit)
	case s.Embedding != nil:
		r.must(t, r.w.embeddings.set(s.Embedding))
	case s.Rerank != nil:
		r.w.rerank.set(*s.Rerank)
	case s.Pause != "":
		r.w.pause(t, s.Pause, time.Now().Add(time.Hour))
	case s.Resume != "":
		r.w.pause(t, s.Resume, time.Now().Add(-time.Hour))
	case s.Unseen != nil:
		r.unseen(t, s.Unseen)
	case s.Fuse != nil:
		r.fuse(t, s.Fuse)
	case s.FuseTexts != nil:
		r.fuseTexts(t, s.FuseTexts)
	case s.Scale != nil:
		r.scale(t, s.Scale)
	case s.Expression != nil:
		r.expressions(t, s.Expression)
	case s.Builder != nil:
		r.builder(t, s.Builder)
	case s.Retriever != nil:
		r.retriever(t, s.Retriever)
	case s.Decode != nil:
		r.decode(t, s.Decode)
	}
}

// tail is the end of a text.
func tail(text string, n int) string { return text[max(0, len(text)-n):] }

func (r *run) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", r.at, err)
	}
}

// errorf reports a difference.
func (r *run) errorf(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Errorf("%s: %s", r.at, fmt.Sprintf(format, args...))
}
