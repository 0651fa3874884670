package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-project/weir/pkg/messages"
)

// ErrLeaseLost says that a job's lease passed to another runner, or that the job is not running any more.
var ErrLeaseLost = errors.New("the lease of the job is lost")

// Job is a job as it stands. What is recorded of its source and target is for ever; Goal is the generation it
// fills now.
type Job struct {
	messages.JobInfo
	Tenant   string
	KBID     int64
	Approved bool // of the gate and by hand
	Selected bool // the documents of a repair are on the list
	Retain   time.Duration
}

// Goal is the generation that the job fills.
func (j Job) Goal() int64 {
	if j.Phase == messages.PhaseRollback {
		return j.Source
	}
	return j.Target
}

// since is the time from which builds of the goal are the job's own.
func (j Job) since() time.Time {
	if j.Kind == messages.JobRepair {
		return j.CreatedAt
	}
	return time.Time{}
}

// NewJob is what StartJob needs beyond the request: everything resolved.
type NewJob struct {
	KB       KB // as loaded: ErrKBChanged when its live generation is another by now
	Kind     messages.JobKind
	Target   Generation // of a reindex; the id is given
	Selector *messages.JobSelector
	Rate     float64
	Failures int // accepted ones
	Manual   bool
	Gate     *messages.JobGate
	Retain   time.Duration
	Estimate messages.JobEstimate
}

// Config is the configuration as jobs show it.
func (g Generation) Config() messages.JobConfig {
	return messages.JobConfig{Embedding: g.Space, Chunking: g.Chunking, Parser: g.Parser, Analyzer: g.Analyzer}
}

// StartJob records a job, and with a reindex its generation and that one's partition, in one transaction. While
// another job of the knowledge base is active it is JOB_CONFLICT.
func (s *Store) StartJob(ctx context.Context, n NewJob) (Job, error) {
	var id int64
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		if err := lockLive(ctx, tx, n.KB.ID, n.KB.Generation.ID); err != nil {
			return err
		}
		if err := conflict(ctx, tx, n.KB.ID); err != nil {
			return err
		}
		target, config := n.KB.Generation.ID, n.KB.Generation.Config()
		if n.Kind == messages.JobReindex {
			config = n.Target.Config()
			if target, err = createGeneration(ctx, tx, n.KB.ID, stateBuilding, n.Target); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, query("job_insert"), n.KB.Tenant, n.KB.Name, n.KB.ID, n.Kind, n.KB.Generation.ID, target, config, n.Selector,
			n.Rate, n.Failures, n.Manual, n.Gate, int64(n.Retain/time.Second), n.Estimate).Scan(&id)
	})
	if err != nil {
		return Job{}, fmt.Errorf("start job of %s: %w", n.KB.Name, err)
	}
	return s.GetJob(ctx, n.KB.Tenant, id)
}

// lockLive locks a knowledge base against everything that changes what is live in it, and makes sure that it
// lives in this generation.
func lockLive(ctx context.Context, tx pgx.Tx, kbID, generation int64) error {
	states, err := lockKB(ctx, tx, kbID)
	if err != nil {
		return err
	}
	if states[generation] != stateLive {
		return ErrKBChanged
	}
	return nil
}

// lockKB locks a knowledge base and returns the states of its generations, dead ones left out. One that is
// deleted is ErrKBChanged.
func lockKB(ctx context.Context, tx pgx.Tx, kbID int64) (map[int64]string, error) {
	var id int64
	err := tx.QueryRow(ctx, query("kb_exclusive"), kbID).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrKBChanged
	}
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, query("generation_states"), kbID)
	if err != nil {
		return nil, err
	}
	states := map[int64]string{}
	var state string
	_, err = pgx.ForEachRow(rows, []any{&id, &state}, func() error { states[id] = state; return nil })
	return states, err
}

func conflict(ctx context.Context, tx querier, kbID int64) error {
	var id int64
	err := tx.QueryRow(ctx, query("job_active"), kbID).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &messages.Error{Code: messages.CodeJobConflict, Field: "knowledgeBaseName", Message: fmt.Sprintf("job %d of the knowledge base is not over", id)}
}

// GetJob returns a job with its errors; an unknown one is NOT_FOUND.
func (s *Store) GetJob(ctx context.Context, tenant string, id int64) (Job, error) {
	j, err := scanJob(s.pool.QueryRow(ctx, query("job_get"), tenant, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return j, jobNotFound(id)
	}
	if err == nil {
		j.Errors, err = s.jobErrors(ctx, j)
	}
	if err != nil {
		return j, fmt.Errorf("get job %d: %w", id, err)
	}
	return j, nil
}

func jobNotFound(id int64) error {
	return &messages.Error{Code: messages.CodeNotFound, Field: "id", Message: fmt.Sprintf("there is no job %d", id)}
}

func (s *Store) jobErrors(ctx context.Context, j Job) ([]messages.JobError, error) {
	rows, err := s.pool.Query(ctx, query("build_errors"), j.Goal(), pgTime(j.since()))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (messages.JobError, error) {
		var e messages.JobError
		return e, row.Scan(&e.Code, &e.Count, &e.Message, &e.Documents)
	})
}

// pgTime is a time as an argument, the zero one as before all others.
func pgTime(t time.Time) any {
	if t.IsZero() {
		return "-infinity"
	}
	return t
}

// ListJobs returns up to limit jobs of a tenant, newest first, with ids below before (0: from the newest). Empty kb
// and state mean all.
func (s *Store) ListJobs(ctx context.Context, tenant, kb string, state messages.JobState, before int64, limit int) ([]Job, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.pool.Query(ctx, query("job_list"), tenant, kb, state, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Job, error) { return scanJob(row) })
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return list, nil
}

func scanJob(row pgx.Row) (Job, error) {
	var j Job
	var retain, skipped int64
	err := row.Scan(&j.ID, &j.Tenant, &j.KnowledgeBaseName, &j.KBID, &j.Kind, &j.State, &j.Phase, &j.Reason, &j.Source, &j.Target, &j.Config,
		&j.Selector, &j.Selected, &j.RateLimit, &j.MaxFailed, &j.Manual, &j.Approved, &j.Approver, &j.Gate, &j.GateResult, &retain, &j.Estimate,
		&j.Counts, &skipped, &j.Runner, &j.Fence, &j.CreatedAt, &j.UpdatedAt, &j.FlippedAt, &j.EndedAt, &j.RetainedUntil)
	j.Retain, j.Counts.Skipped = time.Duration(retain)*time.Second, skipped
	return j, err
}

// change locks a job and its knowledge base, lets fn look at both, and returns the job as it is then. The
// knowledge base of a job that is over may be gone; then states is nil.
func (s *Store) change(ctx context.Context, tenant string, id int64, fn func(tx pgx.Tx, j Job, states map[int64]string) error) (Job, error) {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var kbID int64
		err := tx.QueryRow(ctx, query("job_kb"), tenant, id).Scan(&kbID)
		if errors.Is(err, pgx.ErrNoRows) {
			return jobNotFound(id)
		}
		if err != nil {
			return err
		}
		states, err := lockKB(ctx, tx, kbID)
		if err != nil && !errors.Is(err, ErrKBChanged) {
			return err
		}
		j, err := scanJob(tx.QueryRow(ctx, query("job_get"), tenant, id))
		if err != nil {
			return err
		}
		return fn(tx, j, states)
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == uniqueViolation {
		err = messages.Errorf(messages.CodeJobConflict, "another job of the knowledge base is not over")
	}
	if err != nil {
		return Job{}, fmt.Errorf("change job %d: %w", id, err)
	}
	return s.GetJob(ctx, tenant, id)
}

func unfit(j Job, what string) error {
	return &messages.Error{Code: messages.CodeValidation, Field: "id", Message: fmt.Sprintf("job %d is %s and cannot be %s", j.ID, j.State, what)}
}

// PauseJob has a running job begin nothing more; what is on its way is finished. A paused one stays so.
func (s *Store) PauseJob(ctx context.Context, tenant string, id int64) (Job, error) {
	return s.change(ctx, tenant, id, func(tx pgx.Tx, j Job, _ map[int64]string) error {
		switch j.State {
		case messages.JobPaused:
			return nil
		case messages.JobRunning:
			return exec(ctx, tx, "job_set_state", id, messages.JobPaused, "")
		}
		return unfit(j, "paused")
	})
}

// ResumeJob has a paused or waiting job go on, if asked to with what failed, at another rate where one is given.
func (s *Store) ResumeJob(ctx context.Context, tenant string, r messages.ResumeJob) (Job, error) {
	return s.change(ctx, tenant, r.ID, func(tx pgx.Tx, j Job, _ map[int64]string) error {
		if !j.State.Active() {
			return unfit(j, "resumed")
		}
		if r.RetryFailed {
			if err := exec(ctx, tx, "build_retry", j.Goal()); err != nil {
				return err
			}
		}
		if r.RateLimit != nil {
			if err := exec(ctx, tx, "job_set_rate", r.ID, *r.RateLimit); err != nil {
				return err
			}
		}
		if j.State == messages.JobRunning {
			return nil
		}
		return exec(ctx, tx, "job_set_state", r.ID, messages.JobRunning, "")
	})
}

// ApproveJob has an active job make its goal live when it is complete, whatever its gate finds.
func (s *Store) ApproveJob(ctx context.Context, tenant string, a messages.ApproveJob) (Job, error) {
	return s.change(ctx, tenant, a.ID, func(tx pgx.Tx, j Job, _ map[int64]string) error {
		if !j.State.Active() || j.Kind == messages.JobRepair {
			return unfit(j, "approved")
		}
		if err := exec(ctx, tx, "job_approve", a.ID, a.Approver, a.MaxFailed); err != nil || j.State != messages.JobWaiting {
			return err
		}
		return exec(ctx, tx, "job_set_state", a.ID, messages.JobRunning, "")
	})
}

// CancelJob ends an active job: its generation is dead and dropped later, late work for it is done with. A
// rollback that is cancelled leaves the knowledge base as it is, and the job done.
func (s *Store) CancelJob(ctx context.Context, tenant string, id int64) (Job, error) {
	return s.change(ctx, tenant, id, func(tx pgx.Tx, j Job, states map[int64]string) error {
		switch {
		case j.State == messages.JobCancelled:
			return nil
		case !j.State.Active():
			return unfit(j, "cancelled")
		case j.Phase == messages.PhaseRollback:
			return s.endRollback(ctx, tx, id, "the rollback was cancelled")
		case states[j.Target] == stateBuilding:
			if err := exec(ctx, tx, "generation_set", j.Target, stateDead); err != nil {
				return err
			}
		case j.Kind == messages.JobRepair:
			if err := exec(ctx, tx, "build_forget", j.Target); err != nil {
				return err
			}
		}
		return exec(ctx, tx, "job_set_state", id, messages.JobCancelled, "")
	})
}

// endRollback gives a rollback up: the job is done as it was before.
func (s *Store) endRollback(ctx context.Context, tx pgx.Tx, id int64, reason string) error {
	if err := exec(ctx, tx, "job_phase", id, messages.PhaseBuild); err != nil {
		return err
	}
	return exec(ctx, tx, "job_set_state", id, messages.JobDone, reason)
}

// RollbackJob has a job that is done bring its source generation up to date, to make it live again. One whose
// source is not retained any more, or whose target is not live, is refused.
func (s *Store) RollbackJob(ctx context.Context, tenant string, id int64) (Job, error) {
	return s.change(ctx, tenant, id, func(tx pgx.Tx, j Job, states map[int64]string) error {
		if j.State.Active() && j.Phase == messages.PhaseRollback {
			return nil
		}
		if j.State != messages.JobDone || j.Kind != messages.JobReindex {
			return unfit(j, "rolled back")
		}
		if states[j.Source] != stateRetained || states[j.Target] != stateLive {
			return &messages.Error{Code: messages.CodeValidation, Field: "id", Message: fmt.Sprintf(
				"job %d cannot be rolled back: generation %d is not kept any more, or %d is not the live one", id, j.Source, j.Target)}
		}
		if err := conflict(ctx, tx, j.KBID); err != nil {
			return err
		}
		return exec(ctx, tx, "job_phase", id, messages.PhaseRollback)
	})
}

func exec(ctx context.Context, tx pgx.Tx, name string, args ...any) error {
	_, err := tx.Exec(ctx, query(name), args...)
	return err
}
