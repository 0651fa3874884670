package pgstore

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// EstimateJob reckons what building a knowledge base with another configuration takes. parse says that contents
// are parsed and chunked anew: then the chunks to come are taken to be as many as there are, and the vectors of
// those whose text stays the same to be known.
func (s *Store) EstimateJob(ctx context.Context, kb KB, target Generation, parse bool) (messages.JobEstimate, error) {
	e := messages.JobEstimate{Parse: parse}
	var known []int64
	var err error
	if target.Space != nil {
		if known, err = collectColumn[int64](ctx, s.pool, "generations_of_space", kb.ID, target.Space); err != nil {
			return e, fmt.Errorf("estimate job of %s: %w", kb.Name, err)
		}
	}
	var tokens int64
	err = s.pool.QueryRow(ctx, query("job_estimate"), kb.ID, kb.Generation.ID, known).Scan(&e.Documents, &e.Chunks, &tokens, &e.Texts, &e.Tokens)
	if err != nil {
		return e, fmt.Errorf("estimate job of %s: %w", kb.Name, err)
	}
	if target.Space == nil {
		e.Texts, e.Tokens = 0, 0
	}
	return e, nil
}
