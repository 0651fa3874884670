package rerank

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
)

// counted is the number of measurements by name and outcome.
func (f *fake) counted(t *testing.T) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := f.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					outcome, _ := p.Attributes.Value("outcome")
					out[m.Name+" "+outcome.AsString()] += int64(p.Count) //nolint:gosec // a few
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					outcome, _ := p.Attributes.Value("outcome")
					out[m.Name+" "+outcome.AsString()] += p.Value
				}
			}
		}
	}
	return out
}

func TestReranksAreCounted(t *testing.T) {
	answers := make(chan http.HandlerFunc, 8)
	f := newFake(t, service.RerankProvider{BatchDocuments: 3, Timeout: service.Duration(testkit.Patience)}, func(w http.ResponseWriter, r *http.Request) {
		select {
		case answer := <-answers:
			answer(w, r)
		default:
			saying(200, good)(w, r)
		}
	})
	rerank := func(ctx context.Context) { _, _ = f.models.Rerank(ctx, tyres) } // what comes of it is for other tests
	rerank(t.Context())                                                        // two calls
	answers <- saying(503, "")
	rerank(t.Context()) // a second try of one of them
	answers <- saying(200, "nonsense")
	rerank(t.Context())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	rerank(gone)
	late, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	rerank(late)
	got := f.counted(t)
	for name, want := range map[string]int64{
		"weir.retriever.rerank ok": 2, "weir.retriever.rerank invalid_answer": 1, "weir.retriever.rerank cancelled": 1, "weir.retriever.rerank no_time": 1,
		"weir.retriever.rerank.documents ": 8, "weir.retriever.rerank.calls failed": 1, "weir.retriever.rerank.calls invalid_answer": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if n := got["weir.retriever.rerank.calls ok"]; n < 4 || n > 5 { // the sibling of a failed call may be cancelled
		t.Errorf("%d calls are ok: %v", n, maps.Clone(got))
	}
}

func TestACallThatTakesTooLongIsCounted(t *testing.T) {
	var calls atomic.Int32
	stop := make(chan struct{})
	f := newFake(t, service.RerankProvider{Timeout: service.Duration(50 * time.Millisecond)}, func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	})
	t.Cleanup(func() { close(stop) })
	_, _ = f.models.Rerank(t.Context(), tyres)
	if got := f.counted(t); got["weir.retriever.rerank timed_out"] != 1 || got["weir.retriever.rerank.calls timed_out"] != 1 {
		t.Errorf("got %v, want one rerank and one call timed out", got)
	}
}
