package pgstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// race is writers, a job and a reader at once, over connections of their own.
type race struct {
	*env
	seq     atomic.Uint64
	writing atomic.Int32
	flips   atomic.Int32
	reads   atomic.Int32
}

const (
	raceWriters = 3
	raceSubmits = 40
	raceDocs    = 8
)

// Whatever meets whatever: readers find every live document whole in the live generation at every moment, and in the
// end each holds what was submitted last.
func TestReadersSeeWholeDocumentsWhileGenerationsSwitch(t *testing.T) {
	r := &race{env: newEnv(t)}
	r.seq.Store(1000)
	for i := range raceDocs {
		r.publish(fmt.Sprintf("d%d", i), raceText(fmt.Sprintf("d%d", i), 0))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	r.writing.Store(raceWriters)
	var mu sync.Mutex
	last := map[string]string{}
	for w := range raceWriters {
		g.Go(func() error {
			defer r.writing.Add(-1)
			return r.write(ctx, fmt.Sprintf("own%d", w), rand.New(rand.NewPCG(uint64(w), 3)), func(doc, text string) { mu.Lock(); last[doc] = text; mu.Unlock() }) //nolint:gosec // small
		})
	}
	g.Go(func() error { return r.jobs(ctx) })
	g.Go(func() error { return r.read(ctx) })
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d flips, %d reads", r.flips.Load(), r.reads.Load())
	if r.flips.Load() < 2 {
		t.Error("fewer than two flips: the writers met no switch")
	}
	r.reload()
	for w := range raceWriters { // the last word of each writer's own document stands
		doc := fmt.Sprintf("own%d", w)
		if got := r.count(`SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document_key AND d.live_version = c.version
			WHERE c.generation = $1 AND d.doc_id = $2 AND c.content = ANY ($3)`, r.kb.Generation.ID, doc, strings.Split(last[doc], "\n")); got != 1+strings.Count(last[doc], "\n") {
			t.Errorf("%s: %d chunks of its last text, want %d", doc, got, 1+strings.Count(last[doc], "\n"))
		}
	}
}

// raceText has 1 to 3 chunks, each of which says how many there are.
func raceText(doc string, revision int) string {
	n := 1 + revision%3
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("%s r%d part %d /%d", doc, revision, i, n)
	}
	return strings.Join(lines, "\n")
}

func (r *race) write(ctx context.Context, own string, rng *rand.Rand, said func(doc, text string)) error {
	for i := range raceSubmits {
		doc := fmt.Sprintf("d%d", rng.IntN(raceDocs))
		if i%4 == 0 {
			doc = own
		}
		text := raceText(doc, 1+rng.IntN(1_000_000))
		if err := again(ctx, func() error { return r.put(ctx, doc, text) }); err != nil {
			return fmt.Errorf("submit %s: %w", doc, err)
		}
		said(doc, text)
		if i%5 == 4 && doc != own {
			if err := again(ctx, func() error { return r.drop(ctx, doc) }); err != nil {
				return fmt.Errorf("delete %s: %w", doc, err)
			}
		}
	}
	return nil
}

// again repeats what lost a race.
func again(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if err == nil || ctx.Err() != nil || !pgstore.Conflict(err) && !errors.Is(err, pgstore.ErrKBChanged) {
			return err
		}
	}
}

// put takes a document from its submit to Ready, or until a newer submit overtakes it.
func (r *race) put(ctx context.Context, doc, text string) error {
	kb, err := r.store.LoadKB(ctx, r.kb.Tenant, r.kb.Name)
	if err != nil {
		return err
	}
	n := r.seq.Add(1)
	a, err := r.store.AcceptSubmit(ctx, pgstore.Submission{
		KB: kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("r:%d", n), SubmitID: "m",
		Order: pgstore.Order{At: time.Unix(1_700_000_001, int64(n)), Seq: n}, OSSKey: doc, ContentType: "text/plain", Metadata: json.RawMessage(`{}`), //nolint:gosec // small
		Blob: pgstore.Blob{SHA256: sha256.Sum256([]byte(text)), SizeBytes: int64(len(text))}, Content: []byte(text),
	})
	if err != nil || a.Outcome != pgstore.Accepted {
		return err
	}
	ref := messages.Ref{Tenant: kb.Tenant, KB: kb.Name, KBID: kb.ID, Generation: kb.Generation.ID, Subspace: messages.DefaultSubspace, DocID: doc, DocKey: a.DocKey, Version: a.Version}
	return again(ctx, func() error { return r.through(ctx, ref) })
}

// through takes work of a submit or a build through its stages.
func (r *race) through(ctx context.Context, ref messages.Ref) error {
	for {
		v, err := r.store.BeginParse(ctx, ref)
		if errors.Is(err, pgstore.ErrStale) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r.store.OpenBlob(ctx, ref.KBID, v.Blob))
		if errors.Is(err, pgstore.ErrBlobGone) {
			return nil // overtaken, or deleted
		}
		if err != nil {
			return err
		}
		ref.Generation = v.Generation.ID
		st := linesOf(ref, v.Generation.Space, string(text))
		if _, err := r.store.Stage(ctx, st); err != nil && !errors.Is(err, pgstore.ErrStale) {
			return err
		}
		res, err := r.store.SwapVersions(ctx, ref.Generation, []pgstore.Finished{{
			Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version, Build: ref.Build}, Vectors: r.vectors(len(st.Chunks)),
		}})
		if err != nil || len(res.Lost) == 0 {
			return err
		}
		if _, err := r.store.ResetStaging(ctx, ref); err != nil && !errors.Is(err, pgstore.ErrStale) {
			return err
		}
	}
}

func (r *race) drop(ctx context.Context, doc string) error {
	kb, err := r.store.LoadKB(ctx, r.kb.Tenant, r.kb.Name)
	if err != nil {
		return err
	}
	n := r.seq.Add(1)
	_, err = r.store.DeleteDocument(ctx, pgstore.Deletion{
		KB: kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("r:%d", n), SubmitID: "d",
		Order: pgstore.Order{At: time.Unix(1_700_000_001, int64(n)), Seq: n}, //nolint:gosec // small
	})
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeDocumentNotFound {
		return nil
	}
	return err
}

// jobs switches generations to and fro for as long as anybody writes.
func (r *race) jobs(ctx context.Context) error {
	for i := 0; r.writing.Load() > 0 || r.flips.Load() < 2; i++ {
		kb, err := r.store.LoadKB(ctx, r.kb.Tenant, r.kb.Name)
		if err != nil {
			return err
		}
		target := kb.Generation
		target.ID, target.Space = 0, &messages.Space{Model: fmt.Sprintf("m%d", i), Dims: dims, Metric: "cosine", Normalized: true}
		j, err := r.store.StartJob(ctx, pgstore.NewJob{KB: kb, Kind: messages.JobReindex, Target: target, Retain: time.Hour})
		if errors.Is(err, pgstore.ErrKBChanged) {
			continue
		}
		if err != nil {
			return err
		}
		if err := r.run(ctx); err != nil {
			return err
		}
		if i%2 == 0 {
			continue
		}
		if _, err := r.store.RollbackJob(ctx, kb.Tenant, j.ID); err != nil {
			return err
		}
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *race) run(ctx context.Context) error {
	j, ok, err := r.store.ClaimJob(ctx, "race", time.Hour)
	if err != nil || !ok {
		return fmt.Errorf("claim: %v (%w)", ok, err)
	}
	for {
		for at, n := (pgstore.ListPlace{}), 1; n > 0; {
			if at, n, err = r.store.FillBuilds(ctx, j, at, 5); err != nil {
				return err
			}
		}
		refs, err := r.store.NextBuilds(ctx, j, 20)
		if err != nil {
			return err
		}
		if err := r.store.BuildsQueued(ctx, j, refs); err != nil {
			return err
		}
		for _, ref := range refs {
			if err := again(ctx, func() error { return r.through(ctx, ref) }); err != nil {
				return fmt.Errorf("build %s: %w", ref.DocID, err)
			}
		}
		var f pgstore.Flip
		if err := again(ctx, func() (err error) { f, err = r.store.FlipJob(ctx, j); return err }); err != nil {
			return err
		}
		if f.Done {
			r.flips.Add(1)
			return nil
		}
	}
}

// read looks again and again, each time with one snapshot.
func (r *race) read(ctx context.Context) error {
	for r.writing.Load() > 0 {
		var live, broken int
		err := r.pool.QueryRow(ctx, `
			SELECT count(*), count(*) FILTER (WHERE c.n = 0 OR c.n <> c.said)
			FROM documents d
			JOIN generations g ON g.kb_id = d.kb_id AND g.state = 'live'
			CROSS JOIN LATERAL (
				SELECT count(*) AS n, min(split_part(content, '/', 2)::int) AS said FROM chunks c
				WHERE c.generation = g.id AND c.document_key = d.key AND c.version = d.live_version
			) c
			WHERE d.live_version IS NOT NULL`).Scan(&live, &broken)
		if err != nil {
			return err
		}
		if live == 0 || broken > 0 {
			return fmt.Errorf("of %d live documents, %d are not whole", live, broken)
		}
		r.reads.Add(1)
	}
	return nil
}
