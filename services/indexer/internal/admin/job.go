package admin

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// JobStore is what the requests about jobs need of the database.
type JobStore interface {
	StartJob(ctx context.Context, n pgstore.NewJob) (pgstore.Job, error)
	EstimateJob(ctx context.Context, kb pgstore.KB, target pgstore.Generation, parse bool) (messages.JobEstimate, error)
	LoadGeneration(ctx context.Context, id int64) (pgstore.Generation, error)
	GetJob(ctx context.Context, tenant string, id int64) (pgstore.Job, error)
	ListJobs(ctx context.Context, tenant, kb string, state messages.JobState, before int64, limit int) ([]pgstore.Job, error)
	PauseJob(ctx context.Context, tenant string, id int64) (pgstore.Job, error)
	ResumeJob(ctx context.Context, tenant string, r messages.ResumeJob) (pgstore.Job, error)
	CancelJob(ctx context.Context, tenant string, id int64) (pgstore.Job, error)
	ApproveJob(ctx context.Context, tenant string, a messages.ApproveJob) (pgstore.Job, error)
	RollbackJob(ctx context.Context, tenant string, id int64) (pgstore.Job, error)
}

// StartJob starts a job, after the embedding server has shown that it serves the space, or only estimates it.
func (a *Admin) StartJob(ctx context.Context, r bus.Request) (any, error) {
	var in messages.StartJob
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	kb, err := a.store.LoadKB(ctx, r.Tenant, in.KnowledgeBaseName)
	if err != nil {
		return nil, err
	}
	n, err := a.newJob(kb, in)
	if err != nil {
		return nil, err
	}
	return a.start(ctx, n, in.DryRun)
}

func (a *Admin) start(ctx context.Context, n pgstore.NewJob, dry bool) (messages.JobInfo, error) {
	was := n.KB.Generation
	parse := n.Kind == messages.JobRepair || n.Target.Parser != was.Parser || !reflect.DeepEqual(n.Target.Chunking, was.Chunking)
	var err error
	if n.Estimate, err = a.store.EstimateJob(ctx, n.KB, n.Target, parse); err != nil {
		return messages.JobInfo{}, err
	}
	if dry {
		return messages.JobInfo{
			KnowledgeBaseName: n.KB.Name, Kind: n.Kind, State: messages.JobCancelled, Phase: messages.PhaseBuild, Reason: "a dry run: nothing was started",
			Source: was.ID, Config: n.Target.Config(), Selector: n.Selector, RateLimit: n.Rate, MaxFailed: n.Failures, Manual: n.Manual, Gate: n.Gate, Estimate: n.Estimate,
		}, nil
	}
	if n.Target.Space != nil && !reflect.DeepEqual(n.Target.Space, was.Space) {
		if err := a.probe(ctx, *n.Target.Space); err != nil {
			return messages.JobInfo{}, err
		}
	}
	j, err := a.store.StartJob(ctx, n)
	if err != nil {
		return messages.JobInfo{}, err
	}
	a.wake()
	return jobInfo(j, time.Now()), nil
}

// newJob resolves a request against the knowledge base as it is.
func (a *Admin) newJob(kb pgstore.KB, in messages.StartJob) (pgstore.NewJob, error) {
	n := pgstore.NewJob{
		KB: kb, Kind: in.Kind, Target: kb.Generation, Selector: in.Selector, Rate: in.RateLimit, Failures: in.MaxFailed, Manual: in.Manual, Gate: in.Gate,
		Retain: messages.DefaultJobRetain,
	}
	if in.RetainSeconds != nil {
		n.Retain = time.Duration(*in.RetainSeconds) * time.Second
	}
	if n.Kind == messages.JobRepair {
		return n, checkSelector(kb, in.Selector)
	}
	n.Kind = messages.JobReindex
	var err error
	n.Target, err = a.target(kb, in.Embedding, in.Chunking, in.Analyzer)
	return n, err
}

func checkSelector(kb pgstore.KB, sel *messages.JobSelector) error {
	if sel == nil {
		return nil
	}
	if len(sel.Subspaces) > 0 && !kb.Subspaces {
		return messages.Invalid("selector.subspace", "the knowledge base has no subspaces")
	}
	if len(sel.Filter) == 0 {
		return nil
	}
	f, err := filter.ParseJSON("selector.filter", sel.Filter, filter.Limits{}.WithDefaults())
	if err != nil {
		return err
	}
	_, err = filter.Bind(f, kb.Schema)
	return err
}

// target is the configuration that a knowledge base is to be indexed with: what is absent stays, but for the
// parser, which is always the newest.
func (a *Admin) target(kb pgstore.KB, e *messages.Embedding, chunking *messages.Chunking, analyzer string) (pgstore.Generation, error) {
	g := kb.Generation
	g.ID, g.Parser = 0, ParserVersion
	if analyzer != "" {
		if _, err := lexical.Lookup(analyzer); err != nil {
			return g, messages.Invalid("analyzer", err.Error())
		}
		g.Analyzer = analyzer
	}
	if chunking != nil {
		g.Chunking = chunking.WithDefaults()
		if err := g.Chunking.Validate("chunkingConfiguration"); err != nil {
			return g, err
		}
	}
	if e == nil {
		return g, nil
	}
	if g.Space == nil {
		return g, messages.Invalid("embeddingConfiguration", "a bm25 knowledge base has no vectors")
	}
	space, err := a.spaceFrom(*g.Space, e)
	g.Space = &space
	return g, err
}

// ListJobs lists jobs, newest first.
func (a *Admin) ListJobs(ctx context.Context, r bus.Request) (any, error) {
	var in messages.ListJobs
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	limit, err := pageSize(in.MaxResults)
	if err != nil {
		return nil, err
	}
	var before int64
	if in.NextToken != "" {
		if before, err = strconv.ParseInt(in.NextToken, 10, 64); err != nil || before < 1 {
			return nil, messages.Invalid("nextToken", "is not a token of this listing")
		}
	}
	list, err := a.store.ListJobs(ctx, r.Tenant, in.KnowledgeBaseName, in.State, before, limit+1)
	if err != nil {
		return nil, err
	}
	reply := messages.JobList{Jobs: make([]messages.JobInfo, min(len(list), limit))}
	for i := range reply.Jobs {
		reply.Jobs[i] = jobInfo(list[i], time.Now())
	}
	if len(list) > limit {
		reply.NextToken = strconv.FormatInt(list[limit-1].ID, 10)
	}
	return reply, nil
}

// GetJob shows a job.
func (a *Admin) GetJob(ctx context.Context, r bus.Request) (any, error) {
	return a.ofJob(ctx, r, a.store.GetJob)
}

// PauseJob has a job begin nothing more.
func (a *Admin) PauseJob(ctx context.Context, r bus.Request) (any, error) {
	return a.ofJob(ctx, r, a.store.PauseJob)
}

// CancelJob ends a job.
func (a *Admin) CancelJob(ctx context.Context, r bus.Request) (any, error) {
	return a.ofJob(ctx, r, a.store.CancelJob)
}

// RollbackJob begins to roll a job back, when the model of its source answers.
func (a *Admin) RollbackJob(ctx context.Context, r bus.Request) (any, error) {
	return a.ofJob(ctx, r, func(ctx context.Context, tenant string, id int64) (pgstore.Job, error) {
		j, err := a.store.GetJob(ctx, tenant, id)
		if err != nil {
			return j, err
		}
		if j.State == messages.JobDone && j.RetainedUntil != nil {
			g, err := a.store.LoadGeneration(ctx, j.Source)
			if err != nil {
				return j, fmt.Errorf("roll back job %d: %w", id, err)
			}
			if g.Space != nil {
				if err := a.probe(ctx, *g.Space); err != nil {
					return j, err
				}
			}
		}
		return a.store.RollbackJob(ctx, tenant, id)
	})
}

// ofJob answers a request that names a job and nothing else.
func (a *Admin) ofJob(ctx context.Context, r bus.Request, do func(context.Context, string, int64) (pgstore.Job, error)) (any, error) {
	var in messages.JobRef
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	j, err := do(ctx, r.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	a.wake()
	return jobInfo(j, time.Now()), nil
}

// ResumeJob has a paused or waiting job go on.
func (a *Admin) ResumeJob(ctx context.Context, r bus.Request) (any, error) {
	var in messages.ResumeJob
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	j, err := a.store.ResumeJob(ctx, r.Tenant, in)
	if err != nil {
		return nil, err
	}
	a.wake()
	return jobInfo(j, time.Now()), nil
}

// ApproveJob has a job make its target live.
func (a *Admin) ApproveJob(ctx context.Context, r bus.Request) (any, error) {
	var in messages.ApproveJob
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := in.Validate(); err != nil {
		return nil, err
	}
	j, err := a.store.ApproveJob(ctx, r.Tenant, in)
	if err != nil {
		return nil, err
	}
	a.wake()
	return jobInfo(j, time.Now()), nil
}

// jobInfo adds to a job how fast it is and how long it will take at that rate.
func jobInfo(j pgstore.Job, now time.Time) messages.JobInfo {
	info := j.JobInfo
	info.CreatedAt, info.UpdatedAt = info.CreatedAt.UTC(), info.UpdatedAt.UTC()
	for _, at := range []**time.Time{&info.FlippedAt, &info.EndedAt, &info.RetainedUntil} {
		if *at != nil {
			utc := (*at).UTC()
			*at = &utc
		}
	}
	end := now
	if j.EndedAt != nil {
		end = *j.EndedAt
	}
	took := end.Sub(j.CreatedAt).Seconds()
	if j.Counts.Done == 0 || took <= 0 {
		return info
	}
	info.Rate = float64(j.Counts.Done) / took
	if j.State == messages.JobRunning {
		total := max(j.Counts.Total, j.Estimate.Documents)
		if j.Kind == messages.JobRepair || j.Phase == messages.PhaseRollback {
			total = j.Counts.Total
		}
		eta := float64(max(total-j.Counts.Done-j.Counts.Failed, 0)) / info.Rate
		info.EtaSeconds = &eta
	}
	return info
}
