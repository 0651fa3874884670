package ingester

import (
	"context"

	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
)

// Open makes the service of a process: it opens the connections it needs, which the process closes after
// Run has returned.
func Open(ctx context.Context, p *service.Process, cfg Config) (*Service, error) {
	lent, err := p.Lend(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := p.Postgres(ctx, pgstore.Configure)
	if err != nil {
		return nil, err
	}
	return New(cfg, Deps{Lent: lent, Store: pgstore.New(pool)})
}
