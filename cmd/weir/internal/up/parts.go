package up

import (
	"context"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/retriever"
)

// Names of the parts that are not services.
const (
	partNATS      = "nats"
	partPostgres  = "postgres"
	partEmbedding = "embedding"
)

// runner is a service after New.
type runner = service.Service

// load fills the settings of a service from the environment and the settings file, as its own process
// would, with the addresses of what runs here.
type load func(settings ...service.Settings) error

// serviceSpec is one service. needsDB and needsEmbedding say what the run must have for it. The service
// calls p.Health.Ready once it works; p opens connections, which are closed when the service has ended.
type serviceSpec struct {
	name           string
	needsDB        bool
	needsEmbedding bool
	new            func(ctx context.Context, p *service.Process, load load) (runner, error)
}

// services is the table of services, in the order they are started. One line here is all that a service
// needs to be run by `weir up`, named in --only and shown by `weir status`.
func services() []serviceSpec {
	return []serviceSpec{
		{name: "ingester", needsDB: true, new: opener(ingester.DefaultConfig, ingester.Open)},
		{name: "embedder", needsEmbedding: true, new: opener(embedder.DefaultConfig, embedder.Open)},
		{name: "indexer", needsDB: true, new: opener(indexer.DefaultConfig, indexer.Open)},
		{name: "retriever", needsDB: true, new: opener(retriever.DefaultConfig, retriever.Open)},
	}
}

// opener makes a constructor of a service from its defaults and the way it is opened.
func opener[C any, P interface {
	*C
	service.Settings
}, S runner](
	defaults func() C, open func(context.Context, *service.Process, C) (S, error),
) func(context.Context, *service.Process, load) (runner, error) {
	return func(ctx context.Context, p *service.Process, load load) (runner, error) {
		cfg := defaults()
		if err := load(P(&cfg)); err != nil {
			return nil, err
		}
		return open(ctx, p, cfg)
	}
}

// infrastructure are the parts a service needs, in the order they are started.
func infrastructure() []string { return []string{partNATS, partPostgres, partEmbedding} }

func partNames() []string {
	names := infrastructure()
	for _, s := range services() {
		names = append(names, s.name)
	}
	return names
}
