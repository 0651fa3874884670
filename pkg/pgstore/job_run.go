package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// ClaimJob takes the lease of a running job that nobody holds; ok is false when there is none. Every write of the
// holder names the fencing number that comes with it.
func (s *Store) ClaimJob(ctx context.Context, owner string, lease time.Duration) (j Job, ok bool, err error) {
	j, err = scanJob(s.pool.QueryRow(ctx, query("job_claim"), owner, lease.Seconds()))
	if errors.Is(err, pgx.ErrNoRows) {
		return j, false, nil
	}
	if err != nil {
		return j, false, fmt.Errorf("claim a job: %w", err)
	}
	return j, true, nil
}

// RenewJob prolongs the lease and returns the job as it is now. ErrLeaseLost when somebody else has it, or the
// job does not run.
func (s *Store) RenewJob(ctx context.Context, j Job, lease time.Duration) (Job, error) {
	now, err := scanJob(s.pool.QueryRow(ctx, query("job_renew"), j.ID, j.Fence, lease.Seconds()))
	if errors.Is(err, pgx.ErrNoRows) || err == nil && now.State != messages.JobRunning {
		return j, ErrLeaseLost
	}
	if err != nil {
		return j, fmt.Errorf("renew lease of job %d: %w", j.ID, err)
	}
	return now, nil
}

// ReleaseJob gives the lease back, so that another runner goes on at once.
func (s *Store) ReleaseJob(ctx context.Context, j Job) error {
	if _, err := s.pool.Exec(ctx, query("job_release"), j.ID, j.Fence); err != nil {
		return fmt.Errorf("release job %d: %w", j.ID, err)
	}
	return nil
}

// fenced runs a statement of the holder of a job's lease, whose first arguments are the job and the fence.
func (s *Store) fenced(ctx context.Context, name string, j Job, args ...any) error {
	tag, err := s.pool.Exec(ctx, query(name), append([]any{j.ID, j.Fence}, args...)...)
	if err != nil {
		return fmt.Errorf("write job %d (%s): %w", j.ID, name, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLeaseLost
	}
	return nil
}

// WaitJob has a job wait for somebody.
func (s *Store) WaitJob(ctx context.Context, j Job, reason string) error {
	return s.fenced(ctx, "job_wait", j, reason)
}

// SetGateResult records what the gate measured.
func (s *Store) SetGateResult(ctx context.Context, j Job, r messages.JobGateResult) error {
	return s.fenced(ctx, "job_gate", j, r)
}

// CountJob counts what stands in the job's generation and records it.
func (s *Store) CountJob(ctx context.Context, j Job) (messages.JobCounts, error) {
	var c messages.JobCounts
	err := s.pool.QueryRow(ctx, query("build_counts"), j.Goal(), pgTime(j.since())).Scan(&c.Total, &c.Done, &c.Failed, &c.Chunks, &c.Reused, &c.Tokens)
	if err != nil {
		return c, fmt.Errorf("count builds of job %d: %w", j.ID, err)
	}
	if j.Config.Embedding != nil {
		c.Embedded = c.Chunks - c.Reused
	}
	return c, s.fenced(ctx, "job_counts", j, c)
}

// ListPlace is a document by subspace and id, the order of a job's list.
type ListPlace struct{ Subspace, DocID string }

// FillBuilds puts up to limit live documents behind a place that lack a build on the list of the job, and
// returns the last of them; n is 0 when there are none behind it. A document that somebody is changing right
// now is left out: what is complete is known by a pass from the start that finds nothing, and by FlipJob.
func (s *Store) FillBuilds(ctx context.Context, j Job, after ListPlace, limit int) (last ListPlace, n int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		n = 0
		if _, err := tx.Exec(ctx, query("probe_plans")); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query("build_fill"), j.KBID, j.Goal(), after.Subspace, after.DocID, limit)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&last.Subspace, &last.DocID}, func() error { n++; return nil })
		return err
	})
	if err != nil {
		return last, 0, fmt.Errorf("list documents to build: %w", err)
	}
	return last, n, nil
}

// SelectBuilds puts the documents of a repair on its list, once.
func (s *Store) SelectBuilds(ctx context.Context, j Job, schema messages.MetadataSchema) error {
	text, args, err := selection(j, schema)
	if err != nil {
		return err
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, query("job_selected"), j.ID, j.Fence)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrLeaseLost
		}
		if _, err := tx.Exec(ctx, query("probe_plans")); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, text, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("select documents of job %d: %w", j.ID, err)
	}
	return nil
}

// selection is the statement that puts the documents of a repair on the list.
func selection(j Job, schema messages.MetadataSchema) (string, []any, error) {
	args := []any{j.KBID, j.Goal(), []string(nil), false}
	var shown MetadataCondition
	if sel := j.Selector; sel != nil {
		if len(sel.Subspaces) > 0 {
			args[2] = sel.Subspaces
		}
		args[3] = sel.Stale
		if len(sel.Filter) > 0 {
			f, err := filter.ParseJSON("selector.filter", sel.Filter, filter.Limits{}.WithDefaults())
			if err != nil {
				return "", nil, err
			}
			bound, err := filter.Bind(f, schema)
			if err != nil {
				return "", nil, err
			}
			shown = bound.Predicate
		}
	}
	text, args := shownQuery("build_select", liveTyped, shown, args...)
	return text, args, nil
}

// NextBuilds returns up to limit builds of the job whose work was not published yet.
func (s *Store) NextBuilds(ctx context.Context, j Job, limit int) ([]messages.Ref, error) {
	rows, err := s.pool.Query(ctx, query("build_next"), j.Goal(), limit)
	if err != nil {
		return nil, fmt.Errorf("list builds to begin: %w", err)
	}
	refs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.Ref, error) {
		r := messages.Ref{Generation: j.Goal(), Build: true}
		return r, row.Scan(&r.Tenant, &r.KB, &r.KBID, &r.Subspace, &r.DocID, &r.DocKey, &r.Version, &r.Run)
	})
	if err != nil {
		return nil, fmt.Errorf("list builds to begin: %w", err)
	}
	return refs, nil
}

// BuildsQueued records that the work of builds was published.
func (s *Store) BuildsQueued(ctx context.Context, j Job, refs []messages.Ref) error {
	keys, versions := make([]int64, len(refs)), make([]int64, len(refs))
	for i, r := range refs {
		keys[i], versions[i] = r.DocKey, r.Version
	}
	if _, err := s.pool.Exec(ctx, query("build_queued"), j.Goal(), keys, versions); err != nil {
		return fmt.Errorf("record builds begun: %w", err)
	}
	return nil
}

// BuildsOpen tells how many builds of the job are on their way, and whether others wait to be begun.
func (s *Store) BuildsOpen(ctx context.Context, j Job) (begun int, more bool, err error) {
	if err = s.pool.QueryRow(ctx, query("build_open"), j.Goal()).Scan(&begun, &more); err != nil {
		return 0, false, fmt.Errorf("count open builds: %w", err)
	}
	return begun, more, nil
}

// Flip tells what came of an attempt to make a job's goal live.
type Flip struct {
	Done    bool
	Missing int64 // live documents that are still to be built
	Failed  int64 // live documents whose build failed
}

// FlipJob makes the goal of a job live, if no live document lacks a build in it but for accepted failures. With
// the knowledge base locked, no version can become live and none be deleted between the look and the switch;
// readers go on with what their snapshot saw. The generation that was live is retained, or dead after a rollback. A
// repair has nothing to switch and is only over.
func (s *Store) FlipJob(ctx context.Context, j Job) (Flip, error) {
	var f Flip
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		f = Flip{}
		states, err := lockKB(ctx, tx, j.KBID)
		if err != nil {
			return err
		}
		now, err := scanJob(tx.QueryRow(ctx, query("job_get"), j.Tenant, j.ID))
		if err != nil {
			return err
		}
		if now.Fence != j.Fence || now.State != messages.JobRunning || now.Phase != j.Phase {
			return ErrLeaseLost
		}
		if now.Kind == messages.JobRepair {
			f.Done = true
			return exec(ctx, tx, "job_flipped", j.ID, messages.JobDone)
		}
		if s := states[j.Goal()]; s != stateBuilding && s != stateRetained {
			return fmt.Errorf("generation %d is %q", j.Goal(), s)
		}
		if _, err := tx.Exec(ctx, query("probe_plans")); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, query("flip_missing"), j.KBID, j.Goal()).Scan(&f.Missing, &f.Failed); err != nil {
			return err
		}
		if f.Missing > 0 || f.Failed > int64(now.MaxFailed) {
			return nil
		}
		f.Done = true
		return flip(ctx, tx, now, states)
	})
	if err != nil {
		return Flip{}, fmt.Errorf("flip job %d: %w", j.ID, err)
	}
	return f, nil
}

func flip(ctx context.Context, tx pgx.Tx, j Job, states map[int64]string) error {
	old, state, end := j.Source, stateRetained, messages.JobDone
	if j.Phase == messages.PhaseRollback {
		old, state, end = j.Target, stateDead, messages.JobRolledBack
	}
	if states[old] != stateLive {
		return fmt.Errorf("generation %d is %q, not live", old, states[old])
	}
	b := &pgx.Batch{}
	b.Queue(query("generation_set"), old, state)
	b.Queue(query("generations_retire"), j.KBID, old)
	b.Queue(query("generation_set"), j.Goal(), stateLive)
	b.Queue(query("kb_touch"), j.KBID)
	b.Queue(query("flip_failures"), j.KBID, j.Goal())
	b.Queue(query("flip_titles"), j.KBID, j.Goal())
	b.Queue(query("job_flipped"), j.ID, end)
	return tx.SendBatch(ctx, b).Close()
}

// FailRollback gives a rollback up, with the reason for people; the knowledge base stays as it is.
func (s *Store) FailRollback(ctx context.Context, j Job, reason string) error {
	_, err := s.change(ctx, j.Tenant, j.ID, func(tx pgx.Tx, now Job, _ map[int64]string) error {
		if now.Fence != j.Fence || now.Phase != messages.PhaseRollback || now.State != messages.JobRunning {
			return ErrLeaseLost
		}
		return s.endRollback(ctx, tx, j.ID, reason)
	})
	return err
}
