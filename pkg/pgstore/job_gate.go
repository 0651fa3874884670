package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// LoadGeneration returns a generation by its id. One that is gone is ErrGenerationChanged.
func (s *Store) LoadGeneration(ctx context.Context, id int64) (Generation, error) {
	var g Generation
	err := s.pool.QueryRow(ctx, query("generation_load"), id).Scan(&g.ID, &g.Space, &g.Parser, &g.Chunking, &g.Analyzer, &g.Fingerprint)
	if errors.Is(err, pgx.ErrNoRows) {
		return g, ErrGenerationChanged
	}
	if err != nil {
		return g, fmt.Errorf("load generation %d: %w", id, err)
	}
	return g, nil
}

// SampleChunks returns the beginnings of up to n chunks of a generation, at most 400 characters of each; the same
// ones for the same seed as long as nothing changes.
func (s *Store) SampleChunks(ctx context.Context, generation, seed int64, n int) ([]string, error) {
	list, err := collectColumn[string](ctx, s.pool, "gate_sample", generation, seed, n)
	if err != nil {
		return nil, fmt.Errorf("sample chunks of generation %d: %w", generation, err)
	}
	return list, nil
}
