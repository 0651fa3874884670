package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// reindexed: another space is built beside the live index and switched to, and nobody is told of it.
func reindexed(s *system) {
	s.smallChunks("docs")
	const docs = 12
	s.putAll("docs", docs)
	told, before := s.eventCount("docs"), s.generation("docs")
	j := s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Embedding: otherPrefix("passage two: ")})
	chunks := s.chunkCount("docs")
	if j.Estimate.Documents != docs || j.Estimate.Texts != j.Estimate.Chunks || int(j.Estimate.Chunks) != chunks || j.Estimate.Tokens == 0 {
		s.t.Errorf("estimate: got %+v, want %d documents and %d chunks, all to embed", j.Estimate, docs, chunks)
	}
	_, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobStart, messages.StartJob{KnowledgeBaseName: "docs", Kind: messages.JobRepair})
	if e, ok := messages.AsError(err); (!ok || e.Code != messages.CodeJobConflict) && s.job(j.ID).State == messages.JobRunning {
		s.t.Errorf("a second job: got %v, want JOB_CONFLICT", err)
	}
	j = s.awaitJob(j.ID, messages.JobDone)
	if j.Counts.Done != docs || j.Counts.Reused != 0 || int(j.Counts.Embedded) != chunks || j.Counts.Tokens == 0 || j.Counts.Failed != 0 {
		s.t.Errorf("counts: got %+v", j.Counts)
	}
	if s.generation("docs") == before || s.generation("docs") != j.Target {
		s.t.Errorf("generation: got %d, want %d", s.generation("docs"), j.Target)
	}
	if now := s.eventCount("docs"); now != told {
		s.t.Errorf("a job told %d events of documents, want none", now-told)
	}
	for _, mode := range [][]messages.SearchType{dense, fullText, hybrid} {
		if got := docsOf(s.ask("docs", "word7", mode)); !strings.HasPrefix(got, "doc-7") && !slices.Equal(mode, dense) {
			s.t.Errorf("word7 by %v: got %q", mode, got)
		}
	}
	s.settled()
}

// rechunked: another chunking parses the contents again, and what stays the same text is not embedded again; without
// any change everything is reused.
func rechunked(s *system) {
	s.smallChunks("docs")
	s.putAll("docs", 8)
	before := s.chunkCount("docs")
	whole := &messages.Chunking{Strategy: messages.ChunkWhole}
	info, err := call[messages.KBInfo](s, "docs", messages.OpKBUpdate, messages.UpdateKB{Description: json.RawMessage(`"cut anew"`), Chunking: whole})
	if err != nil || info.JobID == 0 || info.Description != "cut anew" {
		s.t.Fatalf("kb_update: got %+v (%v), want a job and the new description at once", info, err)
	}
	j := s.awaitJob(info.JobID, messages.JobDone)
	if !j.Estimate.Parse || s.chunkCount("docs") >= before || int(j.Counts.Chunks) != s.chunkCount("docs") {
		s.t.Errorf("%d chunks where there were %d: %+v", s.chunkCount("docs"), before, j)
	}
	if d := s.document("docs", "doc-2"); d.Status != messages.StatusReady || d.Chunks != len(s.chunks("docs", "doc-2")) {
		s.t.Errorf("document: got %+v with %d chunks", d, len(s.chunks("docs", "doc-2")))
	}
	same, err := call[messages.KBInfo](s, "docs", messages.OpKBUpdate, messages.UpdateKB{Chunking: whole})
	if err != nil || same.JobID != 0 {
		s.t.Errorf("an update that changes nothing: got job %d (%v)", same.JobID, err)
	}
	again := s.awaitJob(s.startJob(messages.StartJob{KnowledgeBaseName: "docs"}).ID, messages.JobDone)
	if again.Counts.Embedded != 0 || again.Counts.Reused != again.Counts.Chunks {
		s.t.Errorf("an index made anew of the same configuration embedded something: %+v", again.Counts)
	}
	s.settled()
}

// approved: a job waits for its approval, with what its gate has measured, and can be cancelled instead.
func approvedJob(s *system) {
	s.smallChunks("docs")
	s.putAll("docs", 6)
	before := s.generation("docs")
	gate := &messages.JobGate{K: 5, Judged: []messages.JudgedQuery{{Query: "word3", Relevant: map[string]int{"doc-3": 1}}}}
	start := func() messages.JobInfo {
		return s.awaitJob(s.startJob(messages.StartJob{
			KnowledgeBaseName: "docs", Embedding: otherPrefix("other: "), Manual: true, Gate: gate, RateLimit: 1000,
		}).ID, messages.JobWaiting)
	}
	j := start()
	if r := j.GateResult; r == nil || !r.Passed || r.Live == nil || *r.Live == 0 || r.Target == nil || j.Reason == "" {
		s.t.Errorf("waiting: got %+v with gate %+v", j, j.GateResult)
	}
	if s.generation("docs") != before {
		s.t.Error("readers see a generation that was not approved")
	}
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobCancel, messages.JobRef{ID: j.ID}); err != nil {
		s.t.Fatal(err)
	}
	s.awaitCount(0, `SELECT count(*) FROM generations WHERE id = $1`, j.Target)
	j = start()
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobApprove, messages.ApproveJob{ID: j.ID, Approver: "ops"}); err != nil {
		s.t.Fatal(err)
	}
	if j = s.awaitJob(j.ID, messages.JobDone); j.Approver != "ops" || s.generation("docs") != j.Target {
		s.t.Errorf("approved: got %+v", j)
	}
	list, err := call[messages.JobList](s, messages.TenantScope, messages.OpJobList, messages.ListJobs{KnowledgeBaseName: "docs"})
	if err != nil || len(list.Jobs) != 2 || list.Jobs[0].ID != j.ID || list.Jobs[1].State != messages.JobCancelled {
		s.t.Errorf("list: got %+v (%v)", list, err)
	}
	s.settled()
}

// failedBuilds: what the new model refuses is listed, changes no document, and keeps the job from switching.
func failedBuilds(s *system) {
	const bad = "refusedbuild"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.put("docs", doc(1))
	s.put("docs", markdown("bad", "This is "+bad+"."))
	s.fake.refuse(bad, true)
	j := s.awaitJob(s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Embedding: otherPrefix("x: ")}).ID, messages.JobWaiting)
	if len(j.Errors) != 1 || j.Errors[0].Code != messages.CodeEmbeddingRejected || !slices.Equal(j.Errors[0].Documents, []string{"bad"}) || j.Counts.Failed != 1 {
		s.t.Errorf("got %+v, want one document refused", j)
	}
	if d := s.document("docs", "bad"); d.Status != messages.StatusReady || len(s.deadLetters("docs")) != 0 {
		s.t.Errorf("a failed build shows in the document: %+v", d)
	}
	s.fake.refuse(bad, false)
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobResume, messages.ResumeJob{ID: j.ID, RetryFailed: true}); err != nil {
		s.t.Fatal(err)
	}
	if j = s.awaitJob(j.ID, messages.JobDone); j.Counts.Done != 2 || j.Counts.Failed != 0 {
		s.t.Errorf("tried again: got %+v", j.Counts)
	}
	s.settled()
}

// writesOf is how many submits, edits and deletes a writer does in a round; WEIR_REINDEX_WRITES replaces it. Its
// quarter is deleted and submitted again.
func writesOf(t testing.TB) int {
	t.Helper()
	text := os.Getenv("WEIR_REINDEX_WRITES")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("WEIR_REINDEX_WRITES: %q is no number of writes", text)
	}
	return n
}

// writer is what a client did to documents, and so what should be there.
type writer struct {
	s    *system
	kb   string
	text map[string]string // by document, what it should hold
	n    int
}

func (w *writer) put(ctx context.Context, id, word string) error {
	w.n++
	text := sections(1+w.n%3, word)
	w.text[id] = text
	return w.s.client().Call(ctx, messages.RPCSubject(w.s.tenant, w.kb, messages.OpSubmit), nil, markdown(id, text), nil)
}

func (w *writer) del(ctx context.Context, id string) error {
	delete(w.text, id)
	return w.s.client().Call(ctx, messages.RPCSubject(w.s.tenant, w.kb, messages.OpDelete), nil, messages.Delete{DocID: id}, nil)
}

// round does new submits, edits, deletes, and deletes followed by submits of the same id.
func (w *writer) round(ctx context.Context, name string, n int) error {
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		if err := w.put(ctx, id, "fresh "+id); err != nil {
			return fmt.Errorf("submit %s: %w", id, err)
		}
		if err := w.put(ctx, fmt.Sprintf("doc-%d", i), fmt.Sprintf("edited in %s %d", name, i)); err != nil {
			return fmt.Errorf("edit doc-%d: %w", i, err)
		}
		gone := fmt.Sprintf("gone-%s-%d", name, i)
		if err := w.put(ctx, gone, "gone"); err != nil {
			return fmt.Errorf("submit %s: %w", gone, err)
		}
		if err := w.del(ctx, gone); err != nil {
			return fmt.Errorf("delete %s: %w", gone, err)
		}
		if i%4 == 0 {
			if err := errors.Join(w.del(ctx, id), w.put(ctx, id, "born again "+id)); err != nil {
				return fmt.Errorf("delete and submit %s: %w", id, err)
			}
		}
	}
	return nil
}

// writtenDuringJobs: a writer changes documents during a job and between its flip and the rollback, a reader asks all the
// time. Every answer comes whole from one generation, and after each flip readers find what the documents table says.
func writtenDuringJobs(s *system) {
	writes, docs := writesOf(s.t), 30
	s.smallChunks("docs")
	s.putAll("docs", docs)
	w := &writer{s: s, kb: "docs", text: map[string]string{}}
	for i := range docs {
		w.text[fmt.Sprintf("doc-%d", i)] = sections(1+i%3, fmt.Sprintf("word%d", i))
	}
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	reading, readers := errgroup.WithContext(ctx)
	var met atomic.Int64 // the generation of the last answer
	reading.Go(func() error { return s.readAll(readers, ctx, &met) })
	read := func(generation int64) {
		s.t.Helper()
		testkit.Eventually(s.t, func() error {
			if readers.Err() != nil && ctx.Err() == nil {
				s.t.Fatal(reading.Wait())
			}
			if got := met.Load(); got != generation {
				return fmt.Errorf("the reader meets generation %d, want %d", got, generation)
			}
			return nil
		})
	}
	read(s.generation("docs"))

	j := s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Embedding: otherPrefix("during: "), RateLimit: 40})
	if err := w.round(s.t.Context(), "job", writes); err != nil {
		s.t.Fatal(err)
	}
	j = s.awaitJob(j.ID, messages.JobDone)
	w.check(j.Target)
	read(j.Target)
	if err := w.round(s.t.Context(), "after", writes); err != nil {
		s.t.Fatal(err)
	}
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobRollback, messages.JobRef{ID: j.ID}); err != nil {
		s.t.Fatal(err)
	}
	s.awaitJob(j.ID, messages.JobRolledBack)
	w.check(j.Source)
	read(j.Source)
	stop()
	if err := reading.Wait(); err != nil {
		s.t.Error(err)
	}
	s.settled()
}

// readAll asks until stop is done. Answers are whole: none is empty. It tells the generation of each.
func (s *system) readAll(ctx, stop context.Context, met *atomic.Int64) error {
	n := 20
	for stop.Err() == nil && ctx.Err() == nil {
		var out messages.RetrieveReply
		err := s.client().Call(ctx, messages.RPCSubject(s.tenant, "docs", messages.OpRetrieve), nil, messages.RetrieveRequest{
			Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: "pump section"},
			Configuration: &messages.RetrievalConfiguration{
				SearchType: hybrid, Reranking: &messages.RerankingConfig{NumberOfResults: &n},
			},
		}, &out)
		if stop.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ask: %w", err)
		}
		if len(out.Results) < n {
			return fmt.Errorf("an answer of %d results, want %d", len(out.Results), n)
		}
		met.Store(out.Diagnostics.Generation)
	}
	return nil
}

// check waits until everything is Ready and compares what readers find with what was written, and with the documents table.
func (w *writer) check(generation int64) {
	s := w.s
	s.t.Helper()
	s.awaitCount(0, `SELECT count(*) FROM documents d JOIN knowledge_bases k ON k.id = d.kb_id WHERE k.tenant = $1 AND d.status NOT IN ('Ready', 'Deleted')`, s.tenant)
	if got := s.generation(w.kb); got != generation {
		s.t.Fatalf("the live generation is %d, want %d", got, generation)
	}
	if n := s.count(`SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1 AND c.version IS DISTINCT FROM d.live_version`, generation); n != 0 {
		s.t.Errorf("%d chunks of versions that are not live", n)
	}
	if n := s.count(`SELECT count(*) FROM documents d JOIN knowledge_bases k ON k.id = d.kb_id WHERE k.tenant = $2 AND d.live_version IS NOT NULL
		AND NOT EXISTS (SELECT FROM chunks c WHERE c.generation = $1 AND c.document_key = d.key AND c.version = d.live_version)`, generation, s.tenant); n != 0 {
		s.t.Errorf("%d live documents are not in generation %d", n, generation)
	}
	if n := s.count(`SELECT count(*) FROM documents d JOIN knowledge_bases k ON k.id = d.kb_id WHERE k.tenant = $1 AND d.live_version IS NOT NULL`, s.tenant); n != len(w.text) {
		s.t.Errorf("%d live documents, want %d", n, len(w.text))
	}
	for id, text := range w.text {
		var all strings.Builder
		for _, c := range s.chunks(w.kb, id) {
			all.WriteString(c.Content + "\n")
		}
		marks := strings.SplitN(text, " is ", 2)[1]
		mark := strings.SplitN(marks, ".", 2)[0]
		if !strings.Contains(all.String(), mark) {
			s.t.Errorf("%s does not hold %q", id, mark)
		}
	}
}

// incremental: what an edit costs, what the same content under another id costs, what metadata cost.
func incremental(s *system) {
	s.smallChunks("docs")
	long := sections(1000, "incremental")
	if first := s.put("docs", markdown("long", long)); first.Chunks < 1000 {
		s.t.Fatalf("the long document has %d chunks", first.Chunks)
	}
	before := s.fake.embedded("incremental")
	s.put("docs", markdown("long", strings.Replace(long, "section 500 is", "section 500 surely is", 1)))
	if n := s.fake.embedded("incremental") - before; n == 0 || n > 5 {
		s.t.Errorf("an edit of one paragraph embedded %d chunks, want 1 to 5", n)
	}
	before = s.fake.embedded("incremental")
	if other := s.put("docs", markdown("copy", long)); other.Chunks-other.Reused > 5 {
		s.t.Errorf("the same content under another id: got %+v", other)
	}
	j := s.awaitJob(s.startJob(messages.StartJob{KnowledgeBaseName: "docs"}).ID, messages.JobDone)
	if n := s.fake.embedded("incremental") - before; n > 5 || j.Counts.Embedded != 0 || j.Counts.Reused < 2000 {
		s.t.Errorf("%d texts embedded, job %+v, want full reuse", n, j.Counts)
	}
	s.settled()
}

// repaired: chunks that were lost are built anew from the stored content.
func repaired(s *system) {
	s.smallChunks("docs")
	s.putAll("docs", 4)
	want := s.chunkCount("docs")
	if _, err := s.pool.Exec(s.t.Context(), `DELETE FROM chunks c USING documents d, knowledge_bases k
		WHERE d.key = c.document_key AND k.id = d.kb_id AND k.tenant = $1 AND d.doc_id = 'doc-2' AND c.ordinal > 0`, s.tenant); err != nil {
		s.t.Fatal(err)
	}
	j := s.awaitJob(s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Kind: messages.JobRepair, Selector: &messages.JobSelector{Stale: true}}).ID, messages.JobDone)
	if j.Counts.Total != 1 || j.Counts.Done != 1 || s.chunkCount("docs") != want {
		s.t.Errorf("got %+v and %d chunks, want one document repaired and %d", j.Counts, s.chunkCount("docs"), want)
	}
	s.settled()
}

// interrupted: a job that is paused begins nothing and goes on when it is resumed.
func interrupted(s *system) {
	const word = "heldjob"
	s.createKB(messages.CreateKB{KnowledgeBaseName: "docs"})
	s.put("docs", markdown("a", "First "+word+" text."))
	release := s.fake.hold(word)
	j := s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Embedding: otherPrefix("held: ")})
	testkit.Eventually(s.t, func() error {
		if s.fake.waitingFor(word) == 0 {
			return errors.New("nothing is on its way")
		}
		return nil
	})
	if p, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobPause, messages.JobRef{ID: j.ID}); err != nil || p.State != messages.JobPaused {
		s.t.Fatalf("pause: got %+v (%v)", p, err)
	}
	release()
	s.awaitCount(1, `SELECT count(*) FROM document_builds WHERE generation = $1 AND state = 'done'`, j.Target)
	if now := s.job(j.ID); now.State != messages.JobPaused || s.generation("docs") == j.Target {
		s.t.Errorf("paused: got %+v", now)
	}
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobResume, messages.ResumeJob{ID: j.ID}); err != nil {
		s.t.Fatal(err)
	}
	s.awaitJob(j.ID, messages.JobDone)
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobPause, messages.JobRef{ID: j.ID}); err == nil {
		s.t.Error("a job that is done was paused")
	}
	_, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobGet, messages.JobRef{ID: 1 << 40})
	isError(s.t, "an unknown job", err, messages.CodeNotFound, "id")
	s.settled()
}

// judgedDuringJob: while a job runs, no query is answered worse than by the worse of both generations.
func judgedDuringJob(s *system) {
	const docs = 24
	s.smallChunks("docs")
	s.putAll("docs", docs)
	measure := func() (ndcg [docs]float64) {
		for i := range ndcg {
			for rank, r := range s.ask("docs", fmt.Sprintf("pump word%d", i), hybrid) {
				if rank < 10 && r.DocID == fmt.Sprintf("doc-%d", i) {
					ndcg[i] = 1 / math.Log2(float64(rank+2))
					break
				}
			}
		}
		return ndcg
	}
	before := measure()
	j := s.startJob(messages.StartJob{KnowledgeBaseName: "docs", Embedding: otherPrefix("judged: "), RateLimit: 40, Manual: true})
	var during [][docs]float64
	until := func(state messages.JobState) {
		during = append(during, measure()) // once at least, however fast the job is
		for deadline := time.Now().Add(testkit.Patience); s.job(j.ID).State != state; {
			if during = append(during, measure()); time.Now().After(deadline) {
				s.t.Fatalf("the job is %s, want %s", s.job(j.ID).State, state)
			}
		}
	}
	until(messages.JobWaiting)
	if _, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobApprove, messages.ApproveJob{ID: j.ID}); err != nil {
		s.t.Fatal(err)
	}
	until(messages.JobDone)
	after := measure()
	for _, m := range during {
		for i, got := range m {
			if worse := min(before[i], after[i]); got < worse-1e-9 {
				s.t.Errorf("query %d: nDCG@10 %.3f during the job, %.3f before and %.3f after", i, got, before[i], after[i])
			}
		}
	}
	if before[7] == 0 {
		s.t.Error("nothing relevant is found at all")
	}
	s.settled()
}
