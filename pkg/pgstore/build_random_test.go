package pgstore_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// play takes random steps of submits, deletes, work of every stage and a job, each step a transaction of its own, in
// any order that the bus could bring about, and checks after each what must hold at every moment.
type play struct {
	*env
	rng     *rand.Rand
	job     *pgstore.Job       // the one that runs
	last    int64              // the newest that is done
	open    []work             // work on its way, some of it late
	live    map[string]string  // text of what readers should see
	wanted  map[string]version // the newest accepted version of each document
	flips   int
	copied  int
	flipped map[string]int
}

type version struct {
	number int64
	text   string
}

// work is a message: of a submit or a build, to be parsed or committed.
type work struct {
	ref    messages.Ref
	text   string
	staged bool
}

const playDocs = 6

func TestRandomInterleavingsKeepGenerationsWhole(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &play{env: newEnv(t), rng: rand.New(rand.NewPCG(seed, 7)), live: map[string]string{}, wanted: map[string]version{}, flipped: map[string]int{}}
			for i := range 300 {
				name := p.step()
				if t.Failed() {
					t.Fatalf("step %d: %s", i, name)
				}
				p.check()
				if t.Failed() {
					t.Fatalf("after step %d: %s", i, name)
				}
			}
			p.finish()
			t.Logf("%d flips: %v; %d builds copied", p.flips, p.flipped, p.copied)
		})
	}
}

func (p *play) step() string {
	steps := []struct {
		weight int
		name   string
		do     func()
	}{
		{8, "submit", p.submit},
		{4, "delete", p.delete},
		{14, "parse", p.parse},
		{14, "commit", p.finishOne},
		{4, "start", p.start},
		{6, "fill", p.fillSome},
		{12, "begin builds", p.begin},
		{6, "flip", p.tryFlip},
		{2, "rollback", p.rollback},
		{1, "cancel", p.cancel},
		{3, "again", p.deliverAgain},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := p.rng.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.do()
			return s.name
		}
	}
	return ""
}

func (p *play) doc() string { return fmt.Sprintf("d%d", p.rng.IntN(playDocs)) }

func (p *play) submit() {
	p.reload()
	doc := p.doc()
	text := fmt.Sprintf("%s text %d", doc, p.rng.IntN(1000))
	if p.rng.IntN(2) == 0 {
		text += fmt.Sprintf("\nmore %d", p.rng.IntN(1000))
	}
	sub := p.submission(doc, text)
	a, err := p.store.AcceptSubmit(p.t.Context(), sub)
	if err != nil {
		p.t.Fatal(err)
	}
	if a.Outcome == pgstore.Accepted {
		p.wanted[doc] = version{a.Version, text}
		p.open = append(p.open, work{ref: p.ref(sub, a), text: text})
	}
}

func (p *play) delete() {
	doc := p.doc()
	if _, known := p.wanted[doc]; !known {
		return
	}
	p.remove(doc)
	delete(p.wanted, doc)
	delete(p.live, doc)
}

// pick takes a piece of work in the state asked for.
func (p *play) pick(staged bool) (work, bool) {
	var at []int
	for i, w := range p.open {
		if w.staged == staged {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return work{}, false
	}
	i := at[p.rng.IntN(len(at))]
	w := p.open[i]
	if p.rng.IntN(8) > 0 { // else it stays, to be delivered again
		p.open = slices.Delete(p.open, i, i+1)
	}
	return w, true
}

func (p *play) deliverAgain() {
	if len(p.open) > 0 {
		p.open = append(p.open, p.open[p.rng.IntN(len(p.open))])
	}
}

func (p *play) parse() {
	w, ok := p.pick(false)
	if !ok {
		return
	}
	v, err := p.store.BeginParse(p.t.Context(), w.ref)
	if errors.Is(err, pgstore.ErrStale) {
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	w.ref.Generation = v.Generation.ID
	if !v.Staged {
		_, err = p.store.Stage(p.t.Context(), linesOf(w.ref, v.Generation.Space, w.text))
		if err != nil && !errors.Is(err, pgstore.ErrStale) {
			p.t.Fatal(err)
		}
	}
	w.staged = true
	p.open = append(p.open, w)
}

func (p *play) finishOne() {
	w, ok := p.pick(true)
	if !ok {
		return
	}
	lines := 1 + strings.Count(w.text, "\n")
	f := pgstore.Finished{Candidate: pgstore.Candidate{DocKey: w.ref.DocKey, Version: w.ref.Version, Build: w.ref.Build}}
	if p.rng.IntN(2) == 0 {
		f.Vectors = p.vectors(lines)
	} else if err := p.store.StageVectors(p.t.Context(), w.ref, p.vectors(lines)); err != nil {
		p.t.Fatal(err)
	}
	res, err := p.store.SwapVersions(p.t.Context(), w.ref.Generation, []pgstore.Finished{f})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(res.Lost) > 0 {
		run, err := p.store.ResetStaging(p.t.Context(), w.ref)
		if err != nil && !errors.Is(err, pgstore.ErrStale) {
			p.t.Fatal(err)
		}
		w.ref.Run, w.staged = run, false
		p.open = append(p.open, w)
		return
	}
	if len(res.Swapped) > 0 && !w.ref.Build {
		if now := p.wanted[w.ref.DocID]; now.number != w.ref.Version {
			p.t.Errorf("version %d of %s became live, the newest is %d", w.ref.Version, w.ref.DocID, now.number)
		}
		p.live[w.ref.DocID] = w.text
	}
}

func (p *play) start() {
	if p.job != nil {
		return
	}
	p.reload()
	target := p.kb.Generation
	target.ID = 0
	if p.rng.IntN(3) > 0 { // else its builds can be copied
		target.Space = &messages.Space{Model: fmt.Sprintf("model %d", p.rng.IntN(3)), Dims: dims, Metric: "cosine", Normalized: true}
	}
	if _, err := p.store.StartJob(p.t.Context(), pgstore.NewJob{KB: p.kb, Kind: messages.JobReindex, Target: target, Retain: 1e12}); err != nil {
		p.t.Fatal(err)
	}
	j := p.claim()
	p.job = &j
}

func (p *play) fillSome() {
	if p.job != nil {
		p.env.fill(*p.job)
	}
}

func (p *play) begin() {
	if p.job == nil {
		return
	}
	refs, err := p.store.NextBuilds(p.t.Context(), *p.job, 1+p.rng.IntN(3))
	if err != nil {
		p.t.Fatal(err)
	}
	if p.rng.IntN(2) == 0 {
		refs = p.copySome(refs)
	}
	if err := p.store.BuildsQueued(p.t.Context(), *p.job, refs); err != nil {
		p.t.Fatal(err)
	}
	for _, ref := range refs {
		if _, live := p.live[ref.DocID]; !live {
			p.t.Errorf("a build of %s, which is not live", ref.DocID)
		}
		p.open = append(p.open, work{ref: ref, text: p.live[ref.DocID]})
	}
}

// copySome copies builds where the generations allow it, and returns the others.
func (p *play) copySome(refs []messages.Ref) []messages.Ref {
	p.reload()
	to, err := p.store.LoadGeneration(p.t.Context(), p.job.Goal())
	if err != nil {
		p.t.Fatal(err)
	}
	from, err := p.store.LoadGeneration(p.t.Context(), p.kb.Generation.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	if !pgstore.Copyable(from, to) {
		return refs
	}
	n, left, err := p.store.CopyBuilds(p.t.Context(), from, to, refs)
	if err != nil || n+len(left) != len(refs) {
		p.t.Fatalf("copied %d of %d and left %d (%v)", n, len(refs), len(left), err)
	}
	p.copied += n
	return left
}

func (p *play) tryFlip() {
	if p.job == nil {
		return
	}
	p.env.fill(*p.job)
	f, err := p.store.FlipJob(p.t.Context(), *p.job)
	if err != nil {
		p.t.Fatal(err)
	}
	if f.Done {
		p.flips++
		p.flipped[string(p.job.Phase)]++
		p.last, p.job = p.job.ID, nil
		if p.rng.IntN(3) == 0 {
			p.rollback()
		}
	}
}

func (p *play) rollback() {
	if p.job != nil || p.last == 0 {
		return
	}
	_, err := p.store.RollbackJob(p.t.Context(), p.kb.Tenant, p.last)
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeValidation {
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	j := p.claim()
	p.job = &j
}

func (p *play) cancel() {
	if p.job == nil {
		return
	}
	if _, err := p.store.CancelJob(p.t.Context(), p.kb.Tenant, p.job.ID); err != nil {
		p.t.Fatal(err)
	}
	p.job = nil
	if _, err := p.store.DropGenerations(p.t.Context(), 0); err != nil {
		p.t.Fatal(err)
	}
}

// check is what holds at every moment.
func (p *play) check() {
	p.t.Helper()
	for name, sql := range map[string]string{
		"more than one live generation": `SELECT count(*) - 1 FROM generations WHERE state = 'live'`,
		"more than one being built":     `SELECT greatest(count(*) - 1, 0) FROM generations WHERE state = 'building'`,
		"chunks of a version that is not live": `SELECT count(*) FROM chunks c JOIN generations g ON g.id = c.generation AND g.state <> 'dead'
			JOIN documents d ON d.key = c.document_key WHERE c.version IS DISTINCT FROM d.live_version`,
		"live documents without chunks": `SELECT count(*) FROM documents d JOIN generations g ON g.kb_id = d.kb_id AND g.state = 'live'
			WHERE d.live_version IS NOT NULL AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = g.id AND c.document_key = d.key AND c.version = d.live_version)`,
		"live documents that a retained generation has not and does not want": `SELECT count(*) FROM documents d JOIN generations g ON g.kb_id = d.kb_id AND g.state = 'retained'
			WHERE d.live_version IS NOT NULL AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = g.id AND c.document_key = d.key AND c.version = d.live_version)
			AND NOT EXISTS (SELECT 1 FROM document_builds b WHERE b.generation = g.id AND b.document_key = d.key AND b.version = d.live_version)`,
		"builds that are done without chunks": `SELECT count(*) FROM document_builds b JOIN generations g ON g.id = b.generation AND g.state <> 'dead'
			WHERE b.state = 'done' AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = b.generation AND c.document_key = b.document_key AND c.version = b.version)`,
		"builds of versions that are not live": `SELECT count(*) FROM document_builds b JOIN documents d ON d.key = b.document_key WHERE b.version IS DISTINCT FROM d.live_version`,
		"staged rows of builds nobody wants": `SELECT count(*) FROM staged_chunks s JOIN generations g ON g.id = s.generation AND g.state = 'building'
			WHERE NOT EXISTS (SELECT 1 FROM document_builds b WHERE b.generation = s.generation AND b.document_key = s.document_key AND b.version = s.version AND b.state = 'pending')`,
		"chunks of the live generation without vectors": `SELECT count(*) FROM chunks WHERE embedding IS NULL`,
		"wrong sizes of the full-text index": `SELECT count(*) FROM generations g WHERE g.state <> 'dead' AND
			(SELECT count(*) FROM chunks c WHERE c.generation = g.id) <>
			(SELECT coalesce(sum(n_docs), 0) FROM lex_segment s WHERE s.generation = g.id) - (SELECT count(*) FROM lex_tombstone l WHERE l.generation = g.id)`,
	} {
		if n := p.count(sql); n != 0 {
			p.t.Errorf("%s: %d", name, n)
		}
	}
	p.reload()
	if got, want := p.readers(), p.expected(); got != want {
		p.t.Errorf("readers see %q, want %q", got, want)
	}
}

// readers is what the live generation holds.
func (p *play) readers() string {
	p.t.Helper()
	var s string
	err := p.pool.QueryRow(p.t.Context(), `SELECT coalesce(string_agg(d.doc_id || ':' || c.content, '|' ORDER BY d.doc_id, c.ordinal), '')
		FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1`, p.kb.Generation.ID).Scan(&s)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *play) expected() string {
	var out []string
	for _, doc := range slices.Sorted(maps.Keys(p.live)) {
		for line := range strings.SplitSeq(p.live[doc], "\n") {
			out = append(out, doc+":"+line)
		}
	}
	return strings.Join(out, "|")
}

// finish drives the job that runs to its flip.
func (p *play) finish() {
	p.t.Helper()
	p.start()
	for range 100 {
		p.begin()
		for range 2 * len(p.open) {
			p.parse()
			p.finishOne()
		}
		if p.tryFlip(); p.job == nil {
			break
		}
	}
	p.check()
	if p.flips == 0 {
		p.t.Error("no job flipped: the steps meet nothing")
	}
}
