package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/messages"
)

// A build is a live version made anew in a generation of a job, beside the live one or in its place. Its work
// goes through the same stages as a submit's, marked Ref.Build, and its state stands in document_builds: it
// touches no status, and nothing of it is seen before the job's flip.

// fanOut tells the other generations of a knowledge base about versions that become live in this transaction,
// under the lock of the knowledge base: each is to be built where a job builds, and where one may be rolled back
// to. The swap removes older versions from every generation.
func fanOut(ctx context.Context, tx pgx.Tx, generations []generationState, swapped []swapRow) error {
	var beside []int64
	for _, g := range generations {
		if g.State == stateBuilding || g.State == stateRetained {
			beside = append(beside, g.ID)
		}
	}
	if len(beside) == 0 {
		return nil
	}
	keys, versions := candidateArrays(swapped)
	b := &pgx.Batch{}
	b.Queue(query("build_skip"), keys, versions)
	b.Queue(query("build_staged_older"), beside, keys, versions)
	b.Queue(query("build_add"), beside, keys, versions)
	return tx.SendBatch(ctx, b).Close()
}

func candidateArrays(rows []swapRow) (keys, versions []int64) {
	keys, versions = make([]int64, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		keys[i], versions[i] = r.DocKey, r.Version
	}
	return keys, versions
}

// commitBuilds moves what a job has built of live versions into its generation. The others it finds are late,
// for a newer version, a delete or a cancelled job: what they left is dropped.
func commitBuilds(ctx context.Context, tx pgx.Tx, generation int64, l locked, finished []Finished, h hand, res *SwapResult) error {
	keys, versions := candidatesOf(finished, true)
	if len(keys) == 0 {
		return nil
	}
	if err := dropLate(ctx, tx, generation, l.builds, keys, versions); err != nil {
		return err
	}
	ready := res.sort(l.builds)
	if len(ready) == 0 {
		return nil
	}
	keys, versions = candidateArrays(ready)
	inactive, err := inactiveOf(ctx, tx, ready[0].kbID, keys)
	if err != nil {
		return err
	}
	live := l.stateOf(generation) == stateLive
	if live { // a repair: the chunks it replaces leave in the same transaction
		if _, err := tx.Exec(ctx, query("live_drop"), generation, keys); err != nil {
			return err
		}
	}
	if err := moverOf(tx, generation, ready, h).move(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(query("build_done"), generation, keys, versions)
	b.Queue(query("build_staged_drop"), generation, keys, versions)
	if len(inactive.keys) > 0 {
		b.Queue(query("build_deactivate"), generation, inactive.keys, inactive.contents)
	}
	if live {
		b.Queue(query("build_repaired"), generation, keys, versions)
	}
	return tx.SendBatch(ctx, b).Close()
}

func (l locked) stateOf(generation int64) string {
	for _, g := range l.generations {
		if g.ID == generation {
			return g.State
		}
	}
	return stateDead
}

// dropLate removes staged rows of builds that there is nothing to do for any more.
func dropLate(ctx context.Context, tx pgx.Tx, generation int64, open []swapRow, keys, versions []int64) error {
	wanted := map[Candidate]bool{}
	for _, r := range open {
		wanted[r.Candidate] = true
	}
	var late, lateVersions []int64
	for i, key := range keys {
		if !wanted[Candidate{DocKey: key, Version: versions[i], Build: true}] {
			late, lateVersions = append(late, key), append(lateVersions, versions[i])
		}
	}
	if len(late) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, query("build_staged_drop"), generation, late, lateVersions)
	return err
}

// passages are chunks known by their text, as parallel arrays.
type passages struct {
	keys     []int64
	contents []string
}

// inactiveOf reads which chunks of the documents are inactive for readers: the same passages stay so.
func inactiveOf(ctx context.Context, tx pgx.Tx, kbID int64, keys []int64) (passages, error) {
	var p passages
	rows, err := tx.Query(ctx, query("build_inactive"), kbID, keys)
	if err != nil {
		return p, err
	}
	var key int64
	var content string
	_, err = pgx.ForEachRow(rows, []any{&key, &content}, func() error {
		p.keys, p.contents = append(p.keys, key), append(p.contents, content)
		return nil
	})
	return p, err
}

// beginBuild is BeginParse for a build.
func (s *Store) beginBuild(ctx context.Context, ref messages.Ref) (Version, error) {
	var v Version
	var hash []byte
	var chunks *int
	var from Generation
	err := s.pool.QueryRow(ctx, query("build_begin"), ref.DocKey, ref.Version, ref.KBID, ref.Generation).Scan(
		&v.Title, &v.OSSKey, &v.ContentType, &hash, &v.Blob.SizeBytes, &chunks, &v.Run,
		&v.Generation.ID, &v.Generation.Space, &v.Generation.Parser, &v.Generation.Chunking, &v.Generation.Analyzer, &v.Generation.Fingerprint,
		&from.ID, &from.Space, &from.Parser, &from.Chunking, &from.Analyzer, &from.Fingerprint)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrStale
	}
	if err != nil {
		return v, fmt.Errorf("begin build of %s: %w", ref.DocID, err)
	}
	copy(v.Blob.SHA256[:], hash)
	if chunks != nil {
		v.Staged, v.Chunks = true, *chunks
	}
	if from.ID != v.Generation.ID {
		v.From = &from
	}
	return v, nil
}

// finishBuild queues the record of a staged build; reused is the number of vectors that were known.
func finishBuild(b *pgx.Batch, st Staging, reused *int) {
	ordinals, each := make([]int, len(st.Chunks)), make([]int, len(st.Chunks))
	for i := range st.Chunks {
		ordinals[i] = st.Chunks[i].Ordinal
		if st.Space != nil {
			each[i] = st.Chunks[i].Tokens
		}
	}
	ref := st.Ref
	b.Queue(query("build_stage_finish"), ref.DocKey, ref.Version, ref.Generation, len(st.Chunks), st.tokens(), orNone(st.Warnings), st.Title, ordinals, each).
		QueryRow(func(row pgx.Row) error { return row.Scan(reused) })
}

// Built is a live version as it stands in a generation.
type Built struct {
	Title    string // found in the content
	Warnings []string
	Chunks   []StagedChunk
}

// BuiltIn reads a version with all its chunks out of a generation; one that is not there has no chunks.
func (s *Store) BuiltIn(ctx context.Context, ref messages.Ref, generation int64) (Built, error) {
	var out Built
	err := s.pool.QueryRow(ctx, query("build_title"), ref.DocKey, ref.Version, generation).Scan(&out.Title, &out.Warnings)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, ErrStale
	}
	if err != nil {
		return out, fmt.Errorf("read %s of generation %d: %w", ref.DocID, generation, err)
	}
	rows, err := s.pool.Query(ctx, query("build_chunks"), generation, ref.DocKey, ref.Version)
	if err != nil {
		return out, fmt.Errorf("read chunks of %s: %w", ref.DocID, err)
	}
	defer rows.Close()
	for rows.Next() {
		var c StagedChunk
		var hash []byte
		err := rows.Scan(&c.Ordinal, &c.PageFrom, &c.PageTo, &c.Tokens, &c.LexLen, &c.HeadingPath, &c.Context, &c.Content, &hash, nil, &c.Origin)
		if err != nil {
			return out, fmt.Errorf("read chunks of %s: %w", ref.DocID, err)
		}
		copy(c.Hash[:], hash)
		c.Lex = append(TSVector(nil), rows.RawValues()[9]...)
		out.Chunks = append(out.Chunks, c)
	}
	if err := rows.Err(); err != nil {
		return out, fmt.Errorf("read chunks of %s: %w", ref.DocID, err)
	}
	return out, nil
}

// failBuild records that a build failed for good and drops what is staged of it, also by those that the lock waits for. One
// that is over is left alone.
func (s *Store) failBuild(ctx context.Context, d NewDeadLetter) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, "swap_lock_rows", []int64{d.Ref.DocKey}); err != nil {
			return err
		}
		return exec(ctx, tx, "build_fail", d.Ref.DocKey, d.Ref.Version, d.Ref.Generation, d.Error, d.Attempts)
	})
	if err != nil {
		return fmt.Errorf("record failed build of %s: %w", d.DocID, err)
	}
	return nil
}

// OpenBuilds is OpenVersions for the builds of running jobs whose work was published.
func (s *Store) OpenBuilds(ctx context.Context, after int64, age time.Duration, limit int) ([]OpenVersion, error) {
	rows, err := s.pool.Query(ctx, query("open_builds"), after, age.Seconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("list open builds: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (OpenVersion, error) {
		v := OpenVersion{Status: messages.StatusIndexing}
		r := &v.Ref
		r.Build = true
		return v, row.Scan(&r.Tenant, &r.KB, &r.KBID, &r.Generation, &r.Subspace, &r.DocID, &r.DocKey, &r.Version, &r.Run,
			&v.Expected, &v.UpdatedAt, &v.Staged, &v.Vectors, &v.HasVectors)
	})
	if err != nil {
		return nil, fmt.Errorf("list open builds: %w", err)
	}
	return list, nil
}
