package jobs

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNDCG(t *testing.T) {
	t.Parallel()
	relevant := map[string]int{"a": 2, "b": 1}
	for _, c := range []struct {
		name  string
		found []string
		want  float64
	}{
		{"ideal", []string{"a", "b", "x"}, 1},
		{"nothing", nil, 0},
		{"nothing relevant", []string{"x", "y"}, 0},
		{"swapped", []string{"b", "a"}, (1 + 3/math.Log2(3)) / (3 + 1/math.Log2(3))},
		{"behind the cut", []string{"x", "y", "z", "a"}, 0},
	} {
		if got := NDCG(relevant, c.found, 3); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if got := NDCG(map[string]int{}, []string{"a"}, 3); got != 0 {
		t.Errorf("nothing judged: got %v, want 0", got)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	sampled := []messages.JudgedQuery{{Query: "q"}, {Query: "r"}}
	judged := []messages.JudgedQuery{{Query: "q", Relevant: map[string]int{"a": 1}}}
	for _, c := range []struct {
		name        string
		gate        messages.JobGate
		queries     []messages.JudgedQuery
		live, built [][]string
		passed      bool
	}{
		{"the same", messages.JobGate{}, sampled, [][]string{{"a"}, {"b", "c"}}, [][]string{{"a"}, {"c", "b"}}, true},
		{"half of it", messages.JobGate{MinOverlap: 0.6}, sampled, [][]string{{"a"}, {"b"}}, [][]string{{"a"}, {"x"}}, false},
		{"nothing was found before", messages.JobGate{MinOverlap: 1}, sampled, [][]string{nil, nil}, [][]string{{"x"}, nil}, true},
		{"no worse", messages.JobGate{Judged: judged}, judged, [][]string{{"x", "a"}}, [][]string{{"a"}}, true},
		{"worse", messages.JobGate{Judged: judged, MaxLoss: 0.1}, judged, [][]string{{"a"}}, [][]string{{"x", "a"}}, false},
		{"worse but accepted", messages.JobGate{Judged: judged, MaxLoss: 0.5}, judged, [][]string{{"a"}}, [][]string{{"x", "a"}}, true},
		{"an empty knowledge base", messages.JobGate{}, nil, nil, nil, true},
	} {
		r := verdict(c.gate.WithDefaults(), c.queries, c.live, c.built, time.Now())
		if r.Passed != c.passed || r.Queries != len(c.queries) {
			t.Errorf("%s: got %+v, want passed %v", c.name, r, c.passed)
		}
	}
}

func TestDocumentsAreFusedByRankAndNamedOnce(t *testing.T) {
	t.Parallel()
	got, err := documents([]pgstore.Match{
		{ChunkID: 1, DocID: "a", DenseRank: 1}, {ChunkID: 2, DocID: "b", DenseRank: 2, TextRank: 1}, {ChunkID: 3, DocID: "a", TextRank: 2}, {ChunkID: 4, DocID: "c", TextRank: 3},
	}, 2)
	if err != nil || strings.Join(got, " ") != "b a" {
		t.Errorf("got %v (%v), want b a", got, err)
	}
}

func TestTheRateLimitsWhatBegins(t *testing.T) {
	t.Parallel()
	d := &drive{}
	if got := d.allowed(0, 7); got != 7 {
		t.Errorf("without a limit: got %d, want 7", got)
	}
	if got := d.allowed(2, 7); got != 1 {
		t.Errorf("at first: got %d, want 1", got)
	}
	d.allowance--
	if got := d.allowed(2, 7); got != 0 {
		t.Errorf("at once again: got %d, want 0", got)
	}
	d.earned = d.earned.Add(-time.Hour)
	if got := d.allowed(2, 7); got != 2 {
		t.Errorf("after a long pause: got %d, want a second's worth, 2", got)
	}
}

// table is a store of one job with documents that are built as soon as they are begun.
type table struct {
	mu      sync.Mutex
	job     pgstore.Job
	claimed bool
	wanted  int // documents not on the list yet
	listed  int
	begun   int
	lost    bool // the lease passes to somebody else
	flips   int
	waits   string
	missing int64 // what the next flip finds missing
	failing int   // calls that fail
	broken  int   // calls that panic
}

var _ Store = (*table)(nil)

var errAway = errors.New("the database is away")

func (s *table) ClaimJob(context.Context, string, time.Duration) (pgstore.Job, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.claimed
	s.claimed = true
	return s.job, !was, nil
}

func (s *table) RenewJob(context.Context, pgstore.Job, time.Duration) (pgstore.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return s.job, pgstore.ErrLeaseLost
	}
	return s.job, nil
}

func (s *table) ReleaseJob(context.Context, pgstore.Job) error { return nil }

func (s *table) LoadKB(context.Context, string, string) (pgstore.KB, error) { return pgstore.KB{}, nil }

func (s *table) SelectBuilds(context.Context, pgstore.Job, messages.MetadataSchema) error { return nil }

func (s *table) FillBuilds(_ context.Context, _ pgstore.Job, _ pgstore.ListPlace, limit int) (pgstore.ListPlace, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.wanted, limit)
	s.wanted, s.listed = s.wanted-n, s.listed+n
	return pgstore.ListPlace{}, n, nil
}

func (s *table) NextBuilds(_ context.Context, _ pgstore.Job, limit int) ([]messages.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken > 0 {
		s.broken--
		panic("broken")
	}
	if s.failing > 0 {
		s.failing--
		return nil, errAway
	}
	return make([]messages.Ref, min(s.listed, limit)), nil
}

func (s *table) BuildsQueued(_ context.Context, _ pgstore.Job, refs []messages.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.begun = s.listed-len(refs), s.begun+len(refs)
	return nil
}

func (s *table) LoadGeneration(_ context.Context, id int64) (pgstore.Generation, error) {
	return pgstore.Generation{ID: id, Parser: "p" + string(rune('0'+id))}, nil
}

func (s *table) CopyBuilds(context.Context, pgstore.Generation, pgstore.Generation, []messages.Ref) (int, []messages.Ref, error) {
	return 0, nil, errors.New("nothing can be copied")
}

func (s *table) BuildsOpen(context.Context, pgstore.Job) (int, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 0, s.listed > 0, nil
}

func (s *table) CountJob(context.Context, pgstore.Job) (messages.JobCounts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return messages.JobCounts{Done: int64(s.begun)}, nil
}

func (s *table) SetGateResult(context.Context, pgstore.Job, messages.JobGateResult) error { return nil }

func (s *table) WaitJob(_ context.Context, _ pgstore.Job, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = reason
	return nil
}

func (s *table) FlipJob(context.Context, pgstore.Job) (pgstore.Flip, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missing > 0 {
		s.wanted, s.missing = int(s.missing), 0
		return pgstore.Flip{Missing: int64(s.wanted)}, nil
	}
	s.flips++
	return pgstore.Flip{Done: true}, nil
}

func (s *table) FailRollback(context.Context, pgstore.Job, string) error { return nil }

// PublishAck takes everything.
func (s *table) PublishAck(_ context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	return make([]bus.Ack, len(msgs)), nil
}

// gateOf passes or not.
type gateOf bool

func (g gateOf) Measure(context.Context, pgstore.Job) (messages.JobGateResult, error) {
	return messages.JobGateResult{Passed: bool(g)}, nil
}

// drove runs the job of a table to its end.
func drove(t *testing.T, s *table, gate Gate) {
	t.Helper()
	s.job.Kind, s.job.State, s.job.Phase, s.job.Source, s.job.Target = messages.JobReindex, messages.JobRunning, messages.PhaseBuild, 1, 2
	r := New(s, s, gate, func(int64) {}, slog.New(slog.DiscardHandler), Config{Tick: time.Millisecond, Idle: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.hold(ctx, s.job)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		<-done
		t.Fatal("the job did not come to an end")
	}
}

func TestAJobIsDrivenToItsFlip(t *testing.T) {
	t.Parallel()
	s := &table{wanted: 2500, missing: 3}
	drove(t, s, gateOf(true))
	if s.flips != 1 || s.begun != 2503 {
		t.Errorf("got %d flips of %d documents, want one of 2503: what a flip misses is built", s.flips, s.begun)
	}
}

func TestAJobWaitsForAGateOrForApproval(t *testing.T) {
	t.Parallel()
	gated := &table{wanted: 1}
	gated.job.Gate = &messages.JobGate{}
	drove(t, gated, gateOf(false))
	manual := &table{wanted: 1}
	manual.job.Manual = true
	drove(t, manual, gateOf(true))
	if gated.flips+manual.flips != 0 || !strings.Contains(gated.waits, "gate") || !strings.Contains(manual.waits, "approve") {
		t.Errorf("got %d flips, reasons %q and %q", gated.flips+manual.flips, gated.waits, manual.waits)
	}
	approved := &table{wanted: 1}
	approved.job.Gate, approved.job.Manual, approved.job.Approved = &messages.JobGate{}, true, true
	drove(t, approved, gateOf(false))
	if approved.flips != 1 {
		t.Errorf("an approved job: got %d flips, want one", approved.flips)
	}
}

func TestALostLeaseEndsTheDrive(t *testing.T) {
	t.Parallel()
	s := &table{wanted: 1, lost: true}
	drove(t, s, gateOf(true))
	if s.flips != 0 || s.begun != 0 {
		t.Errorf("a runner without the lease began %d documents and flipped %d times", s.begun, s.flips)
	}
}

func TestAnOutageIsOutlived(t *testing.T) {
	t.Parallel()
	s := &table{wanted: 1, failing: 2}
	drove(t, s, gateOf(true))
	if s.flips != 1 {
		t.Errorf("got %d flips after an outage, want one", s.flips)
	}
}

// What one document runs into must not end the process, and every one after it that takes the job over.
func TestAPanicIsOutlived(t *testing.T) {
	t.Parallel()
	s := &table{wanted: 1, broken: 1}
	drove(t, s, gateOf(true))
	if s.flips != 1 {
		t.Errorf("got %d flips after a panic, want one", s.flips)
	}
}

// What keeps the lease while a gate measures runs beside it.
func TestAPanicBesideAGateEndsTheMeasuringOnly(t *testing.T) {
	t.Parallel()
	s := &table{}
	d := &drive{Runner: New(lease{s}, s, waiting{}, func(int64) {}, slog.New(slog.DiscardHandler), Config{Lease: time.Millisecond})}
	if _, err := d.measure(t.Context(), s.job); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a gate that was given up", err)
	}
}

// lease is a store that panics when it is renewed.
type lease struct{ *table }

func (lease) RenewJob(context.Context, pgstore.Job, time.Duration) (pgstore.Job, error) {
	panic("broken")
}

// waiting measures until it is told to stop.
type waiting struct{}

func (waiting) Measure(ctx context.Context, _ pgstore.Job) (messages.JobGateResult, error) {
	<-ctx.Done()
	return messages.JobGateResult{}, ctx.Err()
}

// A look through very many documents may take longer than a lease: somebody else would take the job, look as long, and lose it too.
func TestTheLeaseIsKeptWhileDocumentsAreListed(t *testing.T) {
	t.Parallel()
	s := &table{}
	slow := &slowList{table: s, renewed: make(chan struct{})}
	d := &drive{Runner: New(slow, s, gateOf(true), func(int64) {}, slog.New(slog.DiscardHandler), Config{Lease: time.Millisecond})}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.job.Kind = messages.JobReindex
	if err := d.fill(ctx, s.job); err != nil || !d.passed {
		t.Errorf("got %v, passed %v, want the list done", err, d.passed)
	}
	s.lost = true
	if err := d.fill(ctx, s.job); !errors.Is(err, pgstore.ErrLeaseLost) {
		t.Errorf("when the lease is lost: got %v, want ErrLeaseLost", err)
	}
}

// slowList is a store that lists documents while its lease is renewed three times, or until it is told to stop.
type slowList struct {
	*table
	renewed chan struct{}
}

func (s *slowList) RenewJob(ctx context.Context, j pgstore.Job, l time.Duration) (pgstore.Job, error) {
	select {
	case s.renewed <- struct{}{}:
	case <-ctx.Done():
	}
	return s.table.RenewJob(ctx, j, l)
}

func (s *slowList) FillBuilds(ctx context.Context, _ pgstore.Job, _ pgstore.ListPlace, _ int) (pgstore.ListPlace, int, error) {
	for range 3 {
		select {
		case <-s.renewed:
		case <-ctx.Done():
			return pgstore.ListPlace{}, 0, ctx.Err()
		}
	}
	return pgstore.ListPlace{}, 0, nil
}

func TestARunnerClaimsAndStops(t *testing.T) {
	t.Parallel()
	s := &table{wanted: 5}
	s.job.Kind, s.job.State, s.job.Phase, s.job.Source, s.job.Target = messages.JobReindex, messages.JobRunning, messages.PhaseBuild, 1, 2
	r := New(s, s, gateOf(true), func(int64) {}, slog.New(slog.DiscardHandler), Config{Tick: time.Millisecond, Idle: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	deadline := time.Now().Add(20 * time.Second)
	for flips := 0; flips == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the job was not run")
		}
		r.Wake()
		s.mu.Lock()
		flips = s.flips
		s.mu.Unlock()
		time.Sleep(time.Millisecond) // the pause of a poll
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
