package engine_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken stands for everything below the engine, and panics where it is told to. What it does not have panics too.
type broken struct {
	engine.Searcher
	embedder bool
}

func (b broken) LoadKB(_ context.Context, tenant, name string) (pgstore.KB, error) {
	return pgstore.KB{Tenant: tenant, Name: name, ID: 1, IndexType: messages.IndexTypeHybrid, Generation: pgstore.Generation{
		ID: 1, Analyzer: lexical.Default, Space: &messages.Space{Model: "fake", Dims: 1, Metric: "cosine"},
	}}, nil
}

func (b broken) Embed(_ context.Context, _ messages.Space, texts []string) ([][]float32, error) {
	if b.embedder {
		panic("the embedder broke")
	}
	return make([][]float32, len(texts)), nil
}

func (b broken) Search(context.Context, pgstore.SearchPlan) (pgstore.SearchResult, error) {
	panic("the search broke")
}

func (b broken) engine() *engine.Engine {
	return engine.New(engine.Config{
		Limits: messages.DefaultRetrieveLimits(), Loader: b, Searcher: b, Embedder: b, CandidateBytes: 1 << 20,
		ReplyBytes: func() int { return 1 << 20 }, Tracer: noop.NewTracerProvider().Tracer(""), Log: slog.New(slog.DiscardHandler),
	})
}

// Much of a request runs on goroutines of its own. None of them may take the process with it.
func TestAPanicFailsThatRequestOnly(t *testing.T) {
	t.Parallel()
	query := func(kbs ...string) *messages.RetrieveRequest {
		r := &messages.RetrieveRequest{KnowledgeBaseNames: kbs}
		r.Query = &messages.RetrievalQuery{Text: "pump", Type: "TEXT"}
		return r
	}
	for said, b := range map[string]broken{"the search broke": {}, "the embedder broke": {embedder: true}} {
		for name, ask := range map[string]func(*engine.Engine) error{
			"a batch": func(e *engine.Engine) error {
				_, err := e.Batch(t.Context(), "acme", []engine.BatchItem{{KB: "a", Req: query()}, {KB: "b", Req: query()}})
				return err
			},
			"several knowledge bases": func(e *engine.Engine) error {
				_, err := e.Several(t.Context(), "acme", query("a", "b"))
				return err
			},
		} {
			err := ask(b.engine())
			p, ok := guard.Caught(err)
			if !ok || p.Value != said {
				t.Errorf("%s, %s: got %v, want that panic", name, said, err)
			}
			if told, _ := messages.AsError(err); told == nil || told.Code != messages.CodeInternal || strings.Contains(told.Message, "broke") {
				t.Errorf("%s, %s: others are told %v, want INTERNAL and no more", name, said, told)
			}
		}
	}
}
