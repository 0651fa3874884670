package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Ready is a submit whose version is live, and what its event tells.
type Ready struct {
	Candidate
	Chunks, Reused, Tokens int
	Reactivated            int // inactive chunks of the version before, now active
	Warnings               []string
	SubmitID, Source       string
}

// ReadyOf returns, for those of the candidates that are live, or were until a newer version took their
// place, the submits they answer.
func (s *Store) ReadyOf(ctx context.Context, candidates []Candidate) ([]Ready, error) {
	keys, versions := make([]int64, 0, len(candidates)), make([]int64, 0, len(candidates))
	for _, c := range candidates {
		if !c.Build { // a job tells nobody
			keys, versions = append(keys, c.DocKey), append(versions, c.Version)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, query("ready_events"), keys, versions)
	if err != nil {
		return nil, fmt.Errorf("list submits of live versions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Ready, error) {
		var r Ready
		return r, row.Scan(&r.DocKey, &r.Version, &r.Chunks, &r.Reused, &r.Tokens, &r.Warnings, &r.SubmitID, &r.Source, &r.Reactivated)
	})
	if err != nil {
		return nil, fmt.Errorf("list submits of live versions: %w", err)
	}
	return list, nil
}
