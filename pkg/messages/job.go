package messages

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// JobKind says what a job does.
type JobKind string

// A reindex builds a second generation of the whole knowledge base beside the live one and then makes it the
// live one. A repair builds documents of the live generation anew, in place.
const (
	JobReindex JobKind = "reindex"
	JobRepair  JobKind = "repair"
)

// JobState is where a job stands.
type JobState string

// Running, paused and waiting jobs are active: a knowledge base has at most one. The others are over; a
// reindex that is done can be rolled back while its source generation is retained.
const (
	JobRunning    JobState = "running"
	JobPaused     JobState = "paused"
	JobWaiting    JobState = "waiting" // for somebody to approve, resume or cancel it: the reason says why
	JobDone       JobState = "done"
	JobCancelled  JobState = "cancelled"
	JobRolledBack JobState = "rolled_back"
)

// Active reports whether a job of this state keeps others from starting.
func (s JobState) Active() bool { return s == JobRunning || s == JobPaused || s == JobWaiting }

// JobPhase says which generation an active job fills.
type JobPhase string

// A job builds its target; one that is rolled back brings its source up to date.
const (
	PhaseBuild    JobPhase = "build"
	PhaseRollback JobPhase = "rollback"
)

// Bounds of what a job is told.
const (
	MaxJobRate       = 100_000 // documents a second
	MaxJobFailed     = 1_000_000
	MaxJobRetain     = 90 * 24 * time.Hour
	DefaultJobRetain = 24 * time.Hour
	MaxGateQueries   = 500
	MaxGateRelevant  = 1000 // documents judged for a query
	MaxGateK         = 100
	MaxApproverBytes = 200
)

// StartJob is the body of jobs_start. What is absent of the configuration stays as it is.
type StartJob struct {
	KnowledgeBaseName string     `json:"knowledgeBaseName"`
	Kind              JobKind    `json:"kind,omitempty"` // default reindex
	Embedding         *Embedding `json:"embeddingConfiguration,omitempty"`
	Chunking          *Chunking  `json:"chunkingConfiguration,omitempty"`
	Analyzer          string     `json:"analyzer,omitempty"`
	// Selector chooses the documents of a repair; absent: all.
	Selector *JobSelector `json:"selector,omitempty"`
	// RateLimit bounds the documents begun a second; 0: none.
	RateLimit float64 `json:"rateLimit,omitempty"`
	// MaxFailed is how many documents may fail and be lost from the new generation.
	MaxFailed int `json:"maxFailed,omitempty"`
	// Manual has the job wait for jobs_approve before it makes the new generation live.
	Manual bool     `json:"manual,omitempty"`
	Gate   *JobGate `json:"gate,omitempty"` // absent: none
	// RetainSeconds is how long the old generation is kept for a rollback; absent: a day.
	RetainSeconds *int64 `json:"retainSeconds,omitempty"`
	// DryRun only estimates.
	DryRun bool `json:"dryRun,omitempty"`
}

// JobSelector chooses documents; all conditions given must hold.
type JobSelector struct {
	Subspaces []string        `json:"subspace,omitempty"`
	Filter    json.RawMessage `json:"filter,omitempty"` // on metadata, as in retrieval
	// Stale chooses documents whose chunks are not complete in the live generation.
	Stale bool `json:"stale,omitempty"`
}

// JobGate is a comparison of the new generation with the live one. With judged queries it compares nDCG@k,
// without it measures how many of the live generation's first k documents the new one finds too, for
// queries made of the beginnings of stored chunks.
type JobGate struct {
	K          int           `json:"k,omitempty"`          // default 10
	Sample     int           `json:"sample,omitempty"`     // queries to make; default 50
	MinOverlap float64       `json:"minOverlap,omitempty"` // 0 to 1; default 0.5
	MaxLoss    float64       `json:"maxLoss,omitempty"`    // of nDCG@k, 0 to 1; default 0.02
	Judged     []JudgedQuery `json:"judged,omitempty"`
}

// JudgedQuery is a query and what should be found, document ids with a grade above 0.
type JudgedQuery struct {
	Query    string         `json:"query"`
	Relevant map[string]int `json:"relevant"`
}

// WithDefaults returns g with nothing left open.
func (g JobGate) WithDefaults() JobGate {
	if g.K == 0 {
		g.K = 10
	}
	if g.Sample == 0 && len(g.Judged) == 0 {
		g.Sample = 50
	}
	if g.MinOverlap == 0 {
		g.MinOverlap = 0.5
	}
	if g.MaxLoss == 0 {
		g.MaxLoss = 0.02
	}
	return g
}

// JobGateResult is what a gate measured. Overlap is of the documents, Live and Target are mean nDCG@k.
type JobGateResult struct {
	Passed  bool      `json:"passed"`
	Queries int       `json:"queries"`
	K       int       `json:"k"`
	Overlap *float64  `json:"overlap,omitempty"`
	Live    *float64  `json:"liveNdcg,omitempty"`
	Target  *float64  `json:"targetNdcg,omitempty"`
	At      time.Time `json:"at"`
}

// Validate checks everything that needs no knowledge base.
func (s *StartJob) Validate() error {
	if err := ValidateName("knowledgeBaseName", s.KnowledgeBaseName); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]JobKind{"", JobReindex, JobRepair}, s.Kind):
		return Invalid("kind", fmt.Sprintf("%q is not reindex or repair", s.Kind))
	case s.Kind != JobRepair && s.Selector != nil:
		return Invalid("selector", "chooses the documents of a repair; a reindex is of the whole knowledge base")
	case s.Kind == JobRepair && (s.Embedding != nil || s.Chunking != nil || s.Analyzer != ""):
		return Invalid("kind", "a repair takes no new configuration; a reindex does")
	case s.Kind == JobRepair && (s.Gate != nil || s.Manual || s.RetainSeconds != nil):
		return Invalid("kind", "a repair changes the live generation and has no gate, no approval and nothing to retain")
	case s.RateLimit < 0 || s.RateLimit > MaxJobRate:
		return Invalid("rateLimit", fmt.Sprintf("must be 0 to %d documents a second", MaxJobRate))
	case s.MaxFailed < 0 || s.MaxFailed > MaxJobFailed:
		return Invalid("maxFailed", fmt.Sprintf("must be 0 to %d", MaxJobFailed))
	case s.RetainSeconds != nil && (*s.RetainSeconds < 0 || *s.RetainSeconds > int64(MaxJobRetain/time.Second)):
		return Invalid("retainSeconds", fmt.Sprintf("must be 0 to %d", int64(MaxJobRetain/time.Second)))
	}
	if err := s.Selector.validate(); err != nil {
		return err
	}
	return s.Gate.validate()
}

func (s *JobSelector) validate() error {
	if s == nil {
		return nil
	}
	for i, name := range s.Subspaces {
		if err := ValidateName(fmt.Sprintf("selector.subspace[%d]", i), name); err != nil {
			return err
		}
	}
	return nil
}

func (g *JobGate) validate() error {
	if g == nil {
		return nil
	}
	switch {
	case g.K < 0 || g.K > MaxGateK:
		return Invalid("gate.k", fmt.Sprintf("must be 1 to %d", MaxGateK))
	case g.Sample < 0 || g.Sample > MaxGateQueries:
		return Invalid("gate.sample", fmt.Sprintf("must be 1 to %d", MaxGateQueries))
	case g.MinOverlap < 0 || g.MinOverlap > 1:
		return Invalid("gate.minOverlap", "must be 0 to 1")
	case g.MaxLoss < 0 || g.MaxLoss > 1:
		return Invalid("gate.maxLoss", "must be 0 to 1")
	case g.Sample > 0 && len(g.Judged) > 0:
		return Invalid("gate.sample", "makes queries, where judged ones are given")
	case len(g.Judged) > MaxGateQueries:
		return Invalid("gate.judged", fmt.Sprintf("has more than %d queries", MaxGateQueries))
	}
	for i, q := range g.Judged {
		if err := q.validate(fmt.Sprintf("gate.judged[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (q JudgedQuery) validate(at string) error {
	if q.Query == "" {
		return Invalid(at+".query", "is missing")
	}
	if err := ValidText(at+".query", q.Query); err != nil {
		return err
	}
	if len(q.Relevant) == 0 || len(q.Relevant) > MaxGateRelevant {
		return Invalid(at+".relevant", fmt.Sprintf("must name 1 to %d documents", MaxGateRelevant))
	}
	for doc, grade := range q.Relevant {
		if grade < 1 || grade > 100 {
			return Invalid(at+".relevant", fmt.Sprintf("grade of %q must be 1 to 100", doc))
		}
	}
	return nil
}

// JobRef is the body of jobs_get, jobs_pause, jobs_cancel and jobs_rollback.
type JobRef struct {
	ID int64 `json:"id"`
}

// ResumeJob is the body of jobs_resume.
type ResumeJob struct {
	ID          int64    `json:"id"`
	RetryFailed bool     `json:"retryFailed,omitempty"` // take up again what failed
	RateLimit   *float64 `json:"rateLimit,omitempty"`   // absent: as before
}

// Validate checks the bounds.
func (r *ResumeJob) Validate() error {
	if r.RateLimit != nil && (*r.RateLimit < 0 || *r.RateLimit > MaxJobRate) {
		return Invalid("rateLimit", fmt.Sprintf("must be 0 to %d documents a second", MaxJobRate))
	}
	return nil
}

// ApproveJob is the body of jobs_approve: the job goes on to make its target live, whatever its gate found.
type ApproveJob struct {
	ID        int64  `json:"id"`
	Approver  string `json:"approver,omitempty"`  // who, for the record
	MaxFailed *int   `json:"maxFailed,omitempty"` // absent: as before
}

// Validate checks the bounds.
func (a *ApproveJob) Validate() error {
	if a.MaxFailed != nil && (*a.MaxFailed < 0 || *a.MaxFailed > MaxJobFailed) {
		return Invalid("maxFailed", fmt.Sprintf("must be 0 to %d", MaxJobFailed))
	}
	return validateText("approver", a.Approver, MaxApproverBytes)
}

// ListJobs is the body of jobs_list, newest first.
type ListJobs struct {
	KnowledgeBaseName string   `json:"knowledgeBaseName,omitempty"`
	State             JobState `json:"state,omitempty"`
	Page
}

// Validate checks names and state.
func (l *ListJobs) Validate() error {
	if l.KnowledgeBaseName != "" {
		if err := ValidateName("knowledgeBaseName", l.KnowledgeBaseName); err != nil {
			return err
		}
	}
	states := []JobState{"", JobRunning, JobPaused, JobWaiting, JobDone, JobCancelled, JobRolledBack}
	if !slices.Contains(states, l.State) {
		return Invalid("state", fmt.Sprintf("%q is no state of a job", l.State))
	}
	return nil
}

// JobList is a page of jobs.
type JobList struct {
	Jobs      []JobInfo `json:"jobs"`
	NextToken string    `json:"nextToken,omitempty"`
}

// JobConfig is the full configuration that a job builds.
type JobConfig struct {
	Embedding *Space   `json:"embeddingConfiguration,omitempty"`
	Chunking  Chunking `json:"chunkingConfiguration"`
	Parser    string   `json:"parser"`
	Analyzer  string   `json:"analyzer"`
}

// JobEstimate is what a job expects to do, reckoned at its start.
type JobEstimate struct {
	Documents int64 `json:"documents"`
	Chunks    int64 `json:"chunks"`
	Texts     int64 `json:"texts"`  // chunks to embed, after reuse
	Tokens    int64 `json:"tokens"` // of them
	Parse     bool  `json:"parse"`  // contents are parsed and chunked anew
}

// JobCounts is how far a job is. Chunks, Reused, Embedded and Tokens are of documents done; Tokens are those
// of the chunks that were embedded, as the chunker counts.
type JobCounts struct {
	Total    int64 `json:"total"`
	Done     int64 `json:"done"`
	Failed   int64 `json:"failed"`
	Skipped  int64 `json:"skipped"` // begun, and made needless by a newer version or a delete
	Chunks   int64 `json:"chunks"`
	Reused   int64 `json:"reused"`
	Embedded int64 `json:"embedded"`
	Tokens   int64 `json:"tokens"`
}

// MaxJobErrorDocuments bounds the documents named for each code.
const MaxJobErrorDocuments = 100

// JobError is the documents that failed with one code.
type JobError struct {
	Code      Code     `json:"code"`
	Count     int64    `json:"count"`
	Message   string   `json:"message"`   // of one of them
	Documents []string `json:"documents"` // ids, at most MaxJobErrorDocuments
}

// JobInfo describes a job.
type JobInfo struct {
	ID                int64          `json:"id"`
	KnowledgeBaseName string         `json:"knowledgeBaseName"`
	Kind              JobKind        `json:"kind"`
	State             JobState       `json:"state"`
	Phase             JobPhase       `json:"phase"`
	Reason            string         `json:"reason,omitempty"`
	Source            int64          `json:"sourceGeneration"`
	Target            int64          `json:"targetGeneration"`
	Config            JobConfig      `json:"configuration"`
	Selector          *JobSelector   `json:"selector,omitempty"`
	RateLimit         float64        `json:"rateLimit,omitempty"`
	MaxFailed         int            `json:"maxFailed"`
	Manual            bool           `json:"manual,omitempty"`
	Approver          string         `json:"approver,omitempty"`
	Gate              *JobGate       `json:"gate,omitempty"`
	GateResult        *JobGateResult `json:"gateResult,omitempty"`
	Estimate          JobEstimate    `json:"estimate"`
	Counts            JobCounts      `json:"counts"`
	Errors            []JobError     `json:"errors,omitempty"`     // of jobs_get
	Rate              float64        `json:"rate,omitempty"`       // documents a second since the start
	EtaSeconds        *float64       `json:"etaSeconds,omitempty"` // of a running job that has a rate
	Runner            string         `json:"runner,omitempty"`     // who holds the lease
	Fence             int64          `json:"fence"`                // raised with every lease
	CreatedAt         time.Time      `json:"createdAt"`
	UpdatedAt         time.Time      `json:"updatedAt"`
	FlippedAt         *time.Time     `json:"flippedAt,omitempty"`
	EndedAt           *time.Time     `json:"endedAt,omitempty"`
	RetainedUntil     *time.Time     `json:"retainedUntil,omitempty"` // a rollback is possible until then
}
