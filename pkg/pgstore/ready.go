package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	var list []Ready
	err := s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN READ ONLY")
		b.Queue(query("lookup_plans"))
		b.Queue(query("ready_events"), keys, versions).Query(func(rows pgx.Rows) (err error) {
			list, err = pgx.CollectRows(rows, scanReady)
			return err
		})
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("list submits of live versions: %w", err)
	}
	return list, nil
}

func scanReady(row pgx.CollectableRow) (r Ready, err error) {
	return r, row.Scan(&r.DocKey, &r.Version, &r.Chunks, &r.Reused, &r.Tokens, &r.Warnings, &r.SubmitID, &r.Source, &r.Reactivated)
}
