package pgstore_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// reindex starts a job that builds a generation of another space, and claims it.
func (e *env) reindex(change func(*pgstore.NewJob)) pgstore.Job {
	e.t.Helper()
	e.reload()
	target := e.kb.Generation
	target.ID, target.Space = 0, otherSpace()
	n := pgstore.NewJob{KB: e.kb, Kind: messages.JobReindex, Target: target, Retain: time.Hour}
	if change != nil {
		change(&n)
	}
	if _, err := e.store.StartJob(e.t.Context(), n); err != nil {
		e.t.Fatal(err)
	}
	return e.claim()
}

func (e *env) claim() pgstore.Job {
	e.t.Helper()
	j, ok, err := e.store.ClaimJob(e.t.Context(), "test", time.Hour)
	if err != nil || !ok {
		e.t.Fatalf("claim: %v (%v)", ok, err)
	}
	return j
}

func (e *env) reload() {
	e.t.Helper()
	kb, err := e.store.LoadKB(e.t.Context(), e.kb.Tenant, e.kb.Name)
	if err != nil {
		e.t.Fatal(err)
	}
	e.kb = kb
}

// fill puts everything that lacks a build on the list.
func (e *env) fill(j pgstore.Job) {
	e.t.Helper()
	var at pgstore.ListPlace
	for {
		last, n, err := e.store.FillBuilds(e.t.Context(), j, at, 3)
		if err != nil {
			e.t.Fatal(err)
		}
		if n == 0 {
			return
		}
		at = last
	}
}

// stageBuild begins and stages a build from the stored content, one chunk a line.
func (e *env) stageBuild(ref messages.Ref) (lines int, err error) {
	v, err := e.store.BeginParse(e.t.Context(), ref)
	if err != nil {
		return 0, err
	}
	content, err := io.ReadAll(e.store.OpenBlob(e.t.Context(), ref.KBID, v.Blob))
	if err != nil {
		return 0, err
	}
	st := linesOf(ref, v.Generation.Space, string(content))
	_, err = e.store.Stage(e.t.Context(), st)
	return len(st.Chunks), err
}

// commit commits a build with its vectors in hand.
func (e *env) commit(ref messages.Ref, lines int) pgstore.SwapResult {
	e.t.Helper()
	res, err := e.store.SwapVersions(e.t.Context(), ref.Generation, []pgstore.Finished{{
		Candidate: pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version, Build: true}, Vectors: e.vectors(lines),
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	return res
}

// next takes the builds off the list that nobody has begun.
func (e *env) next(j pgstore.Job) []messages.Ref {
	e.t.Helper()
	refs, err := e.store.NextBuilds(e.t.Context(), j, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.store.BuildsQueued(e.t.Context(), j, refs); err != nil {
		e.t.Fatal(err)
	}
	return refs
}

// buildAll builds whatever the job lacks.
func (e *env) buildAll(j pgstore.Job) {
	e.t.Helper()
	e.fill(j)
	for _, ref := range e.next(j) {
		n, err := e.stageBuild(ref)
		if err != nil {
			e.t.Fatal(err)
		}
		if res := e.commit(ref, n); len(res.Swapped) != 1 {
			e.t.Fatalf("commit of %s: got %+v", ref.DocID, res)
		}
	}
}

func (e *env) flip(j pgstore.Job) pgstore.Flip {
	e.t.Helper()
	f, err := e.store.FlipJob(e.t.Context(), j)
	if err != nil {
		e.t.Fatal(err)
	}
	return f
}

func (e *env) remove(doc string) {
	e.t.Helper()
	e.reload()
	e.seq++
	_, err := e.store.DeleteDocument(e.t.Context(), pgstore.Deletion{
		KB: e.kb, Subspace: messages.DefaultSubspace, DocID: doc, Source: fmt.Sprintf("js:%d", e.seq), SubmitID: "del",
		Order: pgstore.Order{At: time.Unix(1_700_000_000, int64(e.seq)), Seq: e.seq}, //nolint:gosec // small
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// texts is what a generation holds, of live versions and of others.
func (e *env) texts(generation int64) string {
	e.t.Helper()
	var s string
	err := e.pool.QueryRow(e.t.Context(), `SELECT coalesce(string_agg(d.doc_id || ':' || c.version || ':' || c.content, '|' ORDER BY d.doc_id, c.version, c.ordinal), '')
		FROM chunks c JOIN documents d ON d.key = c.document_key WHERE c.generation = $1`, generation).Scan(&s)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// otherSpace is a space that no generation of newEnv's knowledge base has.
func otherSpace() *messages.Space {
	return &messages.Space{Model: "other", Dims: dims, Metric: "cosine", Normalized: true}
}

func linesOf(ref messages.Ref, space *messages.Space, text string) pgstore.Staging {
	an, err := lexical.Lookup(lexical.Default)
	if err != nil {
		panic(err)
	}
	st := pgstore.Staging{Ref: ref, Space: space}
	for i, line := range strings.Split(text, "\n") {
		doc := an.Document("", line)
		st.Chunks = append(st.Chunks, pgstore.StagedChunk{
			Ordinal: i, Tokens: 1, Content: line, Hash: sha256.Sum256([]byte(line)), Lex: pgstore.NewTSVector(doc), LexLen: doc.Length,
		})
	}
	return st
}
