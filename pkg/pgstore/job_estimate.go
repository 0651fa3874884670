package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

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
	if e.Texts, e.Tokens, err = s.unknown(ctx, kb, target, known, &e); err != nil {
		return e, fmt.Errorf("estimate job of %s: %w", kb.Name, err)
	}
	return e, nil
}

// unknown counts documents and chunks into e and returns how many chunks must be embedded, and their tokens.
func (s *Store) unknown(ctx context.Context, kb KB, target Generation, known []int64, e *messages.JobEstimate) (texts, tokens int64, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, query("job_estimate"), kb.ID, kb.Generation.ID).Scan(&e.Documents, &e.Chunks, &tokens); err != nil {
			return err
		}
		texts = e.Chunks
		switch {
		case target.Space == nil || slices.Contains(known, kb.Generation.ID):
			texts, tokens = 0, 0
			return nil
		case len(known) == 0:
			return nil
		}
		if _, err := tx.Exec(ctx, query("probe_plans")); err != nil {
			return err
		}
		var have, their int64
		err := tx.QueryRow(ctx, query("job_estimate_known"), kb.Generation.ID, known).Scan(&have, &their)
		texts, tokens = texts-have, tokens-their
		return err
	})
	return texts, tokens, err
}
