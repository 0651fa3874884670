package testweir

import (
	"slices"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// startJob makes a job: one that asks for approval waits for it, any other is done at once.
func (f *Fake) startJob(in messages.StartJob) (any, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	k := f.kbs[in.KnowledgeBaseName]
	if k == nil {
		return nil, messages.Errorf(messages.CodeKBNotFound, "there is no knowledge base %s", in.KnowledgeBaseName)
	}
	n := int64(len(k.docs))
	j := messages.JobInfo{
		ID: int64(len(f.jobs) + 1), KnowledgeBaseName: in.KnowledgeBaseName, Kind: in.Kind, State: messages.JobDone, Phase: messages.PhaseBuild, Source: 1, Target: 2,
		Config: messages.JobConfig{Embedding: k.info.Embedding, Chunking: k.info.Chunking, Parser: "p1", Analyzer: "lex1"}, Selector: in.Selector, Manual: in.Manual,
		Estimate: messages.JobEstimate{Documents: n, Chunks: n}, Counts: messages.JobCounts{Total: n, Done: n, Chunks: n}, Gate: in.Gate,
		CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}
	switch {
	case in.DryRun:
		j.ID, j.State, j.Reason = 0, messages.JobCancelled, "a dry run: nothing was started"
		return j, nil
	case in.Manual:
		j.State, j.Reason = messages.JobWaiting, "everything is built: approve or cancel"
	}
	f.jobs = append(f.jobs, j)
	return j, nil
}

func (f *Fake) listJobs(in messages.ListJobs) (any, error) {
	out := messages.JobList{Jobs: []messages.JobInfo{}}
	for _, j := range slices.Backward(f.jobs) {
		if (in.KnowledgeBaseName == "" || j.KnowledgeBaseName == in.KnowledgeBaseName) && (in.State == "" || j.State == in.State) {
			out.Jobs = append(out.Jobs, j)
		}
	}
	return out, nil
}

// ofJob returns a job, in another state when one is given.
func (f *Fake) ofJob(id int64, state messages.JobState) (any, error) {
	if id < 1 || id > int64(len(f.jobs)) {
		return nil, messages.Errorf(messages.CodeNotFound, "there is no job %d", id)
	}
	j := &f.jobs[id-1]
	if state != "" {
		j.State, j.Reason = state, ""
	}
	return *j, nil
}
