package indexer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/indexer/internal/upkeep"
)

// live makes documents of one chunk Ready, each with a segment of its own.
func (l *lab) live(docs ...string) {
	l.t.Helper()
	h := l.indexing()
	for _, doc := range docs {
		ref := l.staged(doc, "text of "+doc)
		if _, err := h.Handle(l.t.Context(), marshal(l.t, indexWork(ref, 0, 1, 0))); err != nil {
			l.t.Fatal(err)
		}
	}
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("d%02d", i)
	}
	return out
}

func (l *lab) segments() int {
	return l.count("SELECT count(*) FROM lex_segment WHERE generation = $1", l.kb.Generation.ID)
}

// background runs work until the test ends.
func background(t *testing.T, work func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v, want a clean stop", err)
		}
	})
}

func TestTouchedGenerationsAreMergedSoon(t *testing.T) {
	l := newLab(t)
	l.live(numbered(17)...)
	m := upkeep.NewMerger(l.store, testkit.Logger(t))
	background(t, func(ctx context.Context) error { return m.Run(ctx, time.Hour) }) // the first round finds it untouched
	testkit.Eventually(t, func() error {
		if n := l.segments(); n > 2 {
			return fmt.Errorf("%d segments", n)
		}
		return nil
	})
	for i := range 17 {
		l.live(fmt.Sprintf("e%02d", i))
		m.Touch(l.kb.Generation.ID)
	}
	testkit.Eventually(t, func() error {
		if n := l.segments(); n > 16 {
			return fmt.Errorf("%d segments", n)
		}
		return nil
	})
	if n := l.count("SELECT sum(n_docs) FROM lex_segment"); n != 34 {
		t.Errorf("chunks in segments: got %d, want 34", n)
	}
}

// ticks is an upkeep store that only counts, for what depends on time alone.
type ticks struct {
	mu      sync.Mutex
	merges  map[int64]int
	lists   int
	purges  int
	sweeps  int
	failing error
}

var _ upkeep.Store = (*ticks)(nil)

func (s *ticks) GenerationsToMerge(context.Context) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return []int64{1}, s.failing
}

func (s *ticks) MergeSegments(_ context.Context, g int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.merges[g]++
	return s.merges[g]%3 == 1, s.failing // one more round after each that changed something
}

func (s *ticks) PurgeDeleted(context.Context, time.Duration) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purges++
	return nil, s.failing
}

func (s *ticks) ExpireGenerations(context.Context) (int, error) { return 0, s.failing }

func (s *ticks) DropGenerations(context.Context, time.Duration) ([]int64, error) {
	return nil, s.failing
}

func (s *ticks) Sweep(context.Context, pgstore.SweepAges) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
	return 0, s.failing
}

func TestABurstOfTouchesIsOneMerge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &ticks{merges: map[int64]int{}}
		m := upkeep.NewMerger(s, testkit.Logger(t))
		background(t, func(ctx context.Context) error { return m.Run(ctx, time.Hour) })
		synctest.Wait()
		s.mu.Lock()
		if s.lists != 1 || s.merges[1] != 2 {
			t.Errorf("at the start: %d lists and %v merges, want one list and merging until nothing is left", s.lists, s.merges)
		}
		s.mu.Unlock()
		for range 200 { // more than may wait
			m.Touch(7)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s.mu.Lock()
		if s.merges[7] != 2 {
			t.Errorf("got %v, want generation 7 merged until nothing is left, once", s.merges)
		}
		s.mu.Unlock()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lists != 3 {
			t.Errorf("got %d full rounds after two hours, want one at the start and one an hour", s.lists)
		}
	})
}

func TestUpkeepGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &ticks{merges: map[int64]int{}, failing: errors.New("no database")}
		m := upkeep.NewMerger(s, testkit.Logger(t))
		h := upkeep.NewHousekeeper(s, new(publisher), testkit.Logger(t), time.Minute)
		background(t, func(ctx context.Context) error { return m.Run(ctx, time.Minute) })
		background(t, func(ctx context.Context) error { return h.Run(ctx, time.Minute) })
		time.Sleep(150 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.lists != 3 || s.purges != 3 || s.sweeps != 3 {
			t.Errorf("got %d, %d and %d rounds, want three each", s.lists, s.purges, s.sweeps)
		}
	})
}

func (s *ticks) OrphanedSubmits(context.Context, pgstore.OrphanedSubmit, int) ([]pgstore.OrphanedSubmit, error) {
	return nil, nil
}

func TestWhatADeletedKnowledgeBaseLeftOpenIsToldItFailed(t *testing.T) {
	l := newLab(t)
	l.live("doc")
	for i := range 3 {
		l.staged(fmt.Sprintf("open-%d", i), "one")
	}
	if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
		t.Fatal(err)
	}
	told := make(chan bus.Message, 16)
	h := upkeep.NewHousekeeper(l.store, teller(told), testkit.Logger(t), time.Hour)
	background(t, func(ctx context.Context) error { return h.Run(ctx, time.Hour) })
	first := map[string]bool{}
	for round := range 2 {
		for range 3 {
			select {
			case msg := <-told:
				if !strings.HasSuffix(msg.Subject, ".Failed") || !strings.Contains(string(msg.Body), string(messages.CodeKBNotFound)) {
					t.Errorf("got %s %s, want a failure for want of the knowledge base", msg.Subject, msg.Body)
				}
				if round == 0 {
					first[msg.ID] = true
				} else if !first[msg.ID] {
					t.Errorf("told again as %s, want an id of the first time", msg.ID)
				}
			case <-time.After(testkit.Patience):
				t.Fatalf("round %d: not every submit was told", round)
			}
		}
		h.Wake()
	}
	if len(first) != 3 {
		t.Errorf("got %d different events, want 3", len(first))
	}
}

// teller hands messages on.
type teller chan bus.Message

func (c teller) PublishAck(_ context.Context, msgs ...bus.Message) ([]bus.Ack, error) {
	for _, m := range msgs {
		select {
		case c <- m:
		default: // a round after the test looked
		}
	}
	return make([]bus.Ack, len(msgs)), nil
}

func TestDeletedKnowledgeBasesGoAfterTheGrace(t *testing.T) {
	l := newLab(t)
	l.live("doc")
	if err := l.store.DeleteKB(t.Context(), tenant, "docs"); err != nil {
		t.Fatal(err)
	}
	now := upkeep.NewHousekeeper(l.store, new(publisher), testkit.Logger(t), time.Hour)
	background(t, func(ctx context.Context) error { return now.Run(ctx, time.Millisecond) })
	partition := fmt.Sprintf("chunks_g%d", l.kb.Generation.ID)
	state := func() []int {
		return []int{
			l.count("SELECT count(*) FROM pg_class WHERE relname = $1", partition), l.count("SELECT count(*) FROM documents"),
			l.count("SELECT count(*) FROM blobs"), l.count("SELECT count(*) FROM lex_segment"), l.count("SELECT count(*) FROM knowledge_bases"),
		}
	}
	if got := state(); !slices.Equal(got, []int{1, 1, 1, 1, 1}) {
		t.Fatalf("within the grace: got %v, want everything there", got)
	}
	l.exec("UPDATE knowledge_bases SET deleted_at = now() - interval '2 hours'")
	testkit.Eventually(t, func() error {
		if got := state(); !slices.Equal(got, []int{0, 0, 0, 0, 0}) {
			return fmt.Errorf("left: %v", got)
		}
		return nil
	})
}

func TestTheSweepTakesWhatNobodyNeedsAndNothingElse(t *testing.T) {
	l := newLab(t)
	l.live("doc")
	open := l.staged("open", "one\ntwo") // still being indexed
	failed := l.staged("failed", "three")
	l.record(deadWork(1, messages.StageEmbed, failed)) // may be taken up again
	l.exec(`INSERT INTO staged_vectors (generation, document_key, version, ordinal, embedding) VALUES ($1, $2, 1, 0, '[1,0,0,0]'), ($1, 999, 1, 0, '[1,0,0,0]')`, l.kb.Generation.ID, open.DocKey)
	l.exec(`INSERT INTO blobs (kb_id, sha256, size_bytes, created_at) VALUES ($1, '\x01', 1, now() - interval '2 hours'), ($1, '\x02', 1, now())`, l.kb.ID)
	l.exec(`INSERT INTO document_receipts (source, kb_id, document_key, version, order_ns, order_seq, submit_id, outcome, created_at)
		VALUES ('old', $1, 1, 1, 1, 1, 'x', 'accepted', now() - interval '31 days'), ('young', $1, 1, 1, 1, 1, 'x', 'accepted', now() - interval '29 days')`, l.kb.ID)
	l.exec(`INSERT INTO documents (kb_id, subspace, doc_id, version, status, order_ns, order_seq, updated_at)
		VALUES ($1, '_default', 'long gone', 2, 'Deleted', 1, 1, now() - interval '31 days'), ($1, '_default', 'gone', 2, 'Deleted', 1, 1, now())`, l.kb.ID)
	l.exec(`INSERT INTO jobs (tenant, kb, kb_id, kind, state, source, target, config, retain_seconds, ended_at, retained_until)
		SELECT 'acme', 'docs', $1, 'reindex', state, 1, 2, '{}', 0, ended, retained FROM (VALUES
			('done', now() - interval '91 days', NULL), ('cancelled', now() - interval '91 days', NULL),
			('done', now() - interval '91 days', now() + interval '1 day'), ('done', now() - interval '89 days', NULL), ('paused', NULL, NULL)
		) v(state, ended, retained)`, l.kb.ID)
	l.exec(`INSERT INTO dead_letters (source, tenant, kb, stage, error, attempts, subject, headers, body, state, updated_at)
		SELECT state || age, 'acme', 'docs', 'parse', '{}', 1, '', '{}', '', state, now() - make_interval(days => age)
		FROM unnest(ARRAY['open', 'replayed', 'discarded']) state, unnest(ARRAY[89, 91]) age`)
	h := upkeep.NewHousekeeper(l.store, new(publisher), testkit.Logger(t), time.Hour)
	background(t, func(ctx context.Context) error { return h.Run(ctx, time.Hour) })
	testkit.Eventually(t, func() error {
		if n := l.count(`SELECT count(*) FROM blobs WHERE sha256 = '\x01'`); n != 0 {
			return errors.New("the content nobody refers to is there")
		}
		return nil
	})
	for what, c := range map[string]struct {
		sql  string
		want int
	}{
		"staged chunks":  {"SELECT sum(chunks) FROM staged_chunks", 3},
		"staged vectors": {"SELECT count(*) FROM staged_vectors", 1},
		"old receipts":   {"SELECT count(*) FROM document_receipts WHERE source = 'old'", 0},
		"receipts":       {"SELECT count(*) FROM document_receipts", 4},
		"tombstones":     {"SELECT count(*) FROM documents WHERE status = 'Deleted'", 1},
		"documents":      {"SELECT count(*) FROM documents WHERE status <> 'Deleted'", 3},
		"contents":       {"SELECT count(*) FROM blobs", 4},
		"jobs":           {"SELECT count(*) FROM jobs", 3},
		"dead letters":   {"SELECT count(*) FROM dead_letters WHERE kb_id IS NULL", 4},
	} {
		if n := l.count(c.sql); n != c.want {
			t.Errorf("%s: got %d, want %d", what, n, c.want)
		}
	}
}
