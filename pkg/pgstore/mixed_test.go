package pgstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// mixed is everything at once: several hands take random steps of submits, deletes, work of every stage in groups, a job,
// merges, sweeps and failures, each a transaction that meets those of the others. What must hold in the end is counted anew.
type mixed struct {
	*env
	seq   atomic.Uint64
	steps atomic.Int64
	job   mixedJob

	mu     sync.Mutex
	open   []mixedWork
	wanted map[string]mixedDoc // by knowledge base and document
	ended  map[pgstore.Candidate]messages.DocumentStatus
	failed map[pgstore.Candidate]bool
	seen   map[string]int // what happened
}

// mixedWork is a message on its way: to be parsed, or with so many lines to be committed.
type mixedWork struct {
	ref   messages.Ref
	lines int // 0: to be parsed
}

// mixedDoc is what was said of a document last.
type mixedDoc struct {
	seq  uint64
	text string // empty: deleted
}

// mixedJob is in one hand at a time.
type mixedJob struct {
	mu   sync.Mutex
	now  *pgstore.Job
	done int64 // the last that is over
	n    int
}

const (
	mixedHands = 4
	mixedSteps = 1000 // of all hands
	mixedDocs  = 8
	dropped    = "dropped" // the knowledge base that is deleted in the middle
)

func TestEverythingAtOnceAddsUp(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &mixed{
				env: newEnv(t), wanted: map[string]mixedDoc{}, ended: map[pgstore.Candidate]messages.DocumentStatus{},
				failed: map[pgstore.Candidate]bool{}, seen: map[string]int{},
			}
			m.createKB(dropped, messages.IndexTypeHybrid)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			g, ctx := errgroup.WithContext(ctx)
			for hand := range uint64(mixedHands) {
				h := &mixedHand{mixed: m, rng: rand.New(rand.NewPCG(seed, hand))}
				g.Go(func() error { return h.run(ctx) })
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			m.settle(&mixedHand{mixed: m, rng: rand.New(rand.NewPCG(seed, mixedHands))})
			m.check()
			t.Log(m.seen)
			for _, name := range []string{"Ready", "Superseded", "lost", "failed", "merged", "flips"} {
				if m.seen[name] == 0 {
					t.Errorf("%s: none, the steps meet nothing", name)
				}
			}
		})
	}
}

func (m *mixed) count1(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[what]++
}

// mixedHand takes steps with numbers of its own.
type mixedHand struct {
	*mixed
	rng *rand.Rand
}

func (h *mixedHand) run(ctx context.Context) error {
	steps := []struct {
		weight int
		name   string
		do     func(context.Context) error
	}{
		{10, "submit", h.submit},
		{3, "delete", h.delete},
		{16, "parse", h.parse},
		{18, "commit", h.commit},
		{12, "job", h.stepJob},
		{3, "merge", h.merge},
		{2, "hide", h.hide},
		{2, "fail", h.fail},
		{2, "reopen", h.reopen},
		{2, "lose", h.lose},
		{1, "sweep", h.sweep},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	for {
		switch n := h.steps.Add(1); {
		case n > mixedSteps:
			return nil
		case n == mixedSteps/2:
			if err := h.again(ctx, func() error { return h.store.DeleteKB(ctx, h.kb.Tenant, dropped) }); err != nil {
				return fmt.Errorf("delete knowledge base: %w", err)
			}
		}
		n := h.rng.IntN(total)
		for _, s := range steps {
			if n -= s.weight; n < 0 {
				if err := h.again(ctx, func() error { return s.do(ctx) }); err != nil && !gone(err) {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				break
			}
		}
	}
}

// gone reports that the knowledge base is deleted, or that there is no such document or chunk now.
func gone(err error) bool {
	e, ok := messages.AsError(err)
	return ok && (e.Code == messages.CodeKBNotFound || e.Code == messages.CodeDocumentNotFound || e.Code == messages.CodeNotFound)
}

// again repeats what lost a race.
func (h *mixedHand) again(ctx context.Context, fn func() error) error {
	return again(ctx, func() error {
		err := fn()
		if errors.Is(err, pgstore.ErrBlobGone) {
			return pgstore.ErrKBChanged // the same again
		}
		if err != nil && pgstore.Conflict(err) {
			h.count1("conflicts")
		}
		return err
	})
}

func (h *mixedHand) kbName() string {
	if h.rng.IntN(4) == 0 {
		return dropped
	}
	return h.kb.Name
}

func (h *mixedHand) doc() string { return fmt.Sprintf("d%d", h.rng.IntN(mixedDocs)) }

func (h *mixedHand) submit(ctx context.Context) error {
	name := h.kbName()
	var subs []pgstore.Submission
	for _, n := range h.rng.Perm(mixedDocs)[:1+h.rng.IntN(4)] {
		seq := h.seq.Add(1)
		text := raceText(fmt.Sprintf("d%d", n), 1+h.rng.IntN(20))
		subs = append(subs, pgstore.Submission{
			Subspace: messages.DefaultSubspace, DocID: fmt.Sprintf("d%d", n), Source: fmt.Sprintf("s:%d", seq), SubmitID: "m", ContentType: "text/plain",
			Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(seq)), Seq: seq}, Metadata: json.RawMessage(`{}`), //nolint:gosec // small
			Blob: pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
		})
	}
	var kb pgstore.KB
	var all []pgstore.Acceptance
	err := h.again(ctx, func() (err error) {
		if kb, err = h.store.LoadKB(ctx, h.kb.Tenant, name); err != nil {
			return err
		}
		for i := range subs {
			subs[i].KB = kb
		}
		all, err = h.store.AcceptSubmits(ctx, subs)
		return err
	})
	if err != nil {
		return err
	}
	for i, a := range all {
		h.say(name, subs[i].DocID, mixedDoc{subs[i].Order.Seq, string(subs[i].Content)}, a)
		if a.Outcome == pgstore.Accepted {
			h.push(mixedWork{ref: messages.Ref{
				Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Generation: kb.Generation.ID,
				Subspace: messages.DefaultSubspace, DocID: subs[i].DocID, DocKey: a.DocKey, Version: a.Version,
			}})
		}
	}
	return nil
}

func (h *mixedHand) delete(ctx context.Context) error {
	name, doc, seq := h.kbName(), h.doc(), h.seq.Add(1)
	kb, err := h.store.LoadKB(ctx, h.kb.Tenant, name)
	if err != nil {
		return err
	}
	a, err := h.store.DeleteDocument(ctx, pgstore.Deletion{
		KB: kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("s:%d", seq), SubmitID: "d",
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(seq)), Seq: seq}, //nolint:gosec // small
	})
	if err != nil {
		return err
	}
	h.say(name, doc, mixedDoc{seq: seq}, a)
	return nil
}

// say remembers a submit or delete and how those ended that it overtook.
func (m *mixed) say(kb, doc string, d mixedDoc, a pgstore.Acceptance) {
	m.mu.Lock()
	if m.wanted[kb+"/"+doc].seq < d.seq {
		m.wanted[kb+"/"+doc] = d
	}
	m.mu.Unlock()
	for _, r := range a.Overtaken {
		m.end(pgstore.Candidate{DocKey: a.DocKey, Version: r.Version}, messages.StatusSuperseded)
	}
}

// end remembers how a version ended, which it does once.
func (m *mixed) end(c pgstore.Candidate, status messages.DocumentStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[string(status)]++
	if was, known := m.ended[c]; known && was != status {
		m.t.Errorf("version %d of document %d is %s, and was %s", c.Version, c.DocKey, status, was)
	}
	m.ended[c] = status
}

func (m *mixed) push(w mixedWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = append(m.open, w)
}

// take takes up to n pieces of work, of which some stay, to be delivered again.
func (h *mixedHand) take(parse bool, n int) []mixedWork {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out, rest []mixedWork
	for _, i := range h.rng.Perm(len(h.open)) {
		w := h.open[i]
		if (w.lines == 0) != parse || len(out) == n {
			rest = append(rest, w)
			continue
		}
		out = append(out, w)
		if h.rng.IntN(10) == 0 {
			rest = append(rest, w)
		}
	}
	h.open = rest
	return out
}

func (h *mixedHand) parse(ctx context.Context) error {
	works := h.take(true, 1+h.rng.IntN(6))
	refs := make([]messages.Ref, len(works))
	for i, w := range works {
		refs[i] = w.ref
	}
	var begun []*pgstore.Version
	err := h.again(ctx, func() (err error) { begun, err = h.store.BeginParses(ctx, refs); return err })
	if err != nil {
		return err
	}
	var stagings []pgstore.Staging
	for i, v := range begun {
		if v == nil {
			continue
		}
		text, err := io.ReadAll(h.store.OpenBlob(ctx, refs[i].KBID, v.Blob))
		if errors.Is(err, pgstore.ErrBlobGone) {
			continue // overtaken, or deleted
		}
		if err != nil {
			return err
		}
		ref := refs[i]
		ref.Run, ref.Generation = max(ref.Run, v.Run), v.Generation.ID
		st := linesOf(ref, v.Generation.Space, string(text))
		if v.Staged {
			h.push(mixedWork{ref, len(st.Chunks)})
		} else {
			stagings = append(stagings, st)
		}
	}
	var staged []pgstore.Staged
	if err := h.again(ctx, func() (err error) { staged, err = h.store.StageAll(ctx, stagings); return err }); err != nil {
		return err
	}
	for i, s := range staged {
		if !s.Stale {
			h.push(mixedWork{stagings[i].Ref, len(stagings[i].Chunks)})
		}
	}
	return nil
}

// commit commits a group of each generation, with vectors in hand or staged, sometimes not all.
func (h *mixedHand) commit(ctx context.Context) error {
	groups := map[int64][]pgstore.Finished{}
	works := map[pgstore.Candidate]mixedWork{}
	for _, w := range h.take(false, 1+h.rng.IntN(8)) {
		f := pgstore.Finished{Candidate: pgstore.Candidate{DocKey: w.ref.DocKey, Version: w.ref.Version, Build: w.ref.Build}}
		works[f.Candidate] = w
		some := h.vectors(w.lines)[h.rng.IntN(2)*h.rng.IntN(w.lines):]
		if h.rng.IntN(2) == 0 {
			f.Vectors = some
		} else if err := h.again(ctx, func() error { return h.store.StageVectors(ctx, w.ref, some) }); err != nil {
			return err
		}
		groups[w.ref.Generation] = append(groups[w.ref.Generation], f)
	}
	for generation, group := range groups {
		var res pgstore.SwapResult
		if err := h.again(ctx, func() (err error) { res, err = h.store.SwapVersions(ctx, generation, group); return err }); err != nil {
			return err
		}
		if err := h.swapped(ctx, res, works); err != nil {
			return err
		}
	}
	return nil
}

func (h *mixedHand) swapped(ctx context.Context, res pgstore.SwapResult, works map[pgstore.Candidate]mixedWork) error {
	for _, c := range res.Swapped {
		if !c.Build {
			h.end(c, messages.StatusReady)
		}
	}
	for _, c := range res.Incomplete {
		h.push(works[c])
	}
	for _, c := range res.Lost {
		h.count1("lost")
		w := works[c]
		run, err := h.store.ResetStaging(ctx, w.ref)
		if errors.Is(err, pgstore.ErrStale) {
			continue
		}
		if err != nil {
			return err
		}
		w.ref.Run, w.lines = run, 0
		h.push(w)
	}
	return nil
}

func (h *mixedHand) merge(ctx context.Context) error {
	list, err := h.store.GenerationsToMerge(ctx)
	if err != nil {
		return err
	}
	for _, g := range list {
		merged, err := h.store.MergeSegments(ctx, g)
		if err != nil {
			return err
		}
		if merged {
			h.count1("merged")
		}
	}
	return nil
}

func (h *mixedHand) hide(ctx context.Context) error {
	status := messages.ChunkInactive
	if h.rng.IntN(3) == 0 {
		status = messages.ChunkActive
	}
	return h.store.SetChunkStatus(ctx, h.kb.ID, messages.DefaultSubspace, h.doc(), h.rng.IntN(3), status, nil)
}

// fail has some work end as a dead letter.
func (h *mixedHand) fail(ctx context.Context) error {
	for _, w := range h.take(h.rng.IntN(2) == 0, 1) {
		failed, err := h.store.RecordDeadLetter(ctx, pgstore.NewDeadLetter{
			Ref: &w.ref, Tenant: w.ref.Tenant, KB: w.ref.KB, Subspace: w.ref.Subspace, DocID: w.ref.DocID, Source: fmt.Sprintf("l:%d", h.seq.Add(1)),
			Stage: messages.StageParse, Error: *messages.Errorf(messages.CodeInternal, "no"), Headers: map[string]string{}, Body: []byte("{}"),
		})
		if err != nil {
			return err
		}
		if failed {
			h.count1("failed")
			h.mu.Lock()
			h.failed[pgstore.Candidate{DocKey: w.ref.DocKey, Version: w.ref.Version}] = true
			h.mu.Unlock()
		}
	}
	return nil
}

// reopen takes versions up again that failed.
func (h *mixedHand) reopen(ctx context.Context) error {
	rows, err := h.pool.Query(ctx, `SELECT doc_id, version FROM documents WHERE kb_id = $1 AND status = 'Failed'`, h.kb.ID)
	if err != nil {
		return err
	}
	type failed struct {
		Doc     string
		Version int64
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[failed])
	if err != nil {
		return err
	}
	for _, f := range list {
		ref, ok, err := h.store.ReopenVersion(ctx, h.kb.Tenant, h.kb.Name, messages.DefaultSubspace, f.Doc, f.Version)
		if err != nil {
			return err
		}
		if ok {
			h.push(mixedWork{ref: ref})
		}
	}
	return nil
}

// lose drops what is staged of a document, as a crash of the server does of all.
func (h *mixedHand) lose(ctx context.Context) error {
	_, err := h.pool.Exec(ctx, `
		WITH d AS MATERIALIZED (SELECT key FROM documents WHERE kb_id = $1 AND doc_id = $2 FOR UPDATE), v AS (DELETE FROM staged_vectors s USING d WHERE s.document_key = d.key)
		DELETE FROM staged_chunks s USING d WHERE s.document_key = d.key`, h.kb.ID, h.doc())
	return err
}

func (h *mixedHand) sweep(ctx context.Context) error {
	return ignore(h.store.CollectBlobs(ctx, 0))
}
