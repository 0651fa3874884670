package pgstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
)

// stagingWrites is the transaction that stages some versions or some builds, none twice. They differ in where
// their state stands.
type stagingWrites struct {
	builds bool
	all    []*Staging
	places []int // of all, in out
	out    []Staged
	found  []foundStaging
	known  map[spaceOf][]int64 // generations with vectors of a space
}

type foundStaging struct {
	open   bool
	staged bool
}

// spaceOf is an embedding space of a knowledge base.
type spaceOf struct {
	kbID  int64
	space messages.Space
}

// add takes what is of its kind.
func (w *stagingWrites) add(st *Staging, place int) {
	if st.Ref.Build == w.builds {
		w.all, w.places = append(w.all, st), append(w.places, place)
	}
}

func (w *stagingWrites) run(ctx context.Context, conn *pgxpool.Conn) error {
	if err := w.open(ctx, conn); err != nil {
		return err
	}
	var todo []*Staging
	var places []int
	for n, st := range w.all {
		w.out[w.places[n]].Stale = !w.found[n].open
		if w.found[n].open && !w.found[n].staged {
			todo, places = append(todo, st), append(places, w.places[n])
		}
	}
	b := &pgx.Batch{}
	if len(todo) > 0 {
		if err := copyChunks(ctx, conn, todo); err != nil {
			return err
		}
		w.queueReuse(b, todo)
		if err := w.queueFinish(b, todo, places); err != nil {
			return err
		}
	}
	b.Queue("COMMIT")
	return conn.SendBatch(ctx, b).Close()
}

// open begins the transaction, locks the versions, and finds which are staged already and which generations
// hold vectors of their spaces.
func (w *stagingWrites) open(ctx context.Context, conn *pgxpool.Conn) error {
	w.found, w.known = make([]foundStaging, len(w.all)), map[spaceOf][]int64{}
	n := len(w.all)
	keys, versions, generations := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, st := range w.all {
		if st.Space != nil {
			w.known[spaceOf{st.Ref.KBID, *st.Space}] = nil
		}
		keys[i], versions[i], generations[i] = st.Ref.DocKey, st.Ref.Version, st.Ref.Generation
	}
	lock := query("stage_lock")
	if w.builds {
		lock = query("build_stage_lock")
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(query("lookup_plans"))
	b.Queue(query("async_commit")) // a crash empties the staged tables anyway
	b.Queue(lock, keys, versions, generations).Query(func(rows pgx.Rows) error { return scanEach(rows, w.found, (*foundStaging).scan) })
	for at := range w.known {
		b.Queue(query("generations_of_space"), at.kbID, at.space).Query(func(rows pgx.Rows) (err error) {
			w.known[at], err = pgx.CollectRows(rows, pgx.RowTo[int64])
			return err
		})
	}
	return conn.SendBatch(ctx, b).Close()
}

func (f *foundStaging) scan(row pgx.Rows, i *int64) error {
	var chunks *int
	err := row.Scan(i, &chunks)
	f.open, f.staged = true, chunks != nil
	return err
}

func copyChunks(ctx context.Context, conn *pgxpool.Conn, all []*Staging) error {
	var out stagedStream
	for _, st := range all {
		out.add(st)
	}
	return out.send(ctx, conn.Conn(), stagedColumns)
}

// queueReuse queues the look-up of known vectors, one statement a generation that may hold some.
func (w *stagingWrites) queueReuse(b *pgx.Batch, all []*Staging) {
	type wanted struct {
		generations, keys, versions []int64
		ordinals                    []int
		hashes                      [][]byte
	}
	from := map[int64]*wanted{}
	for _, st := range all {
		if st.Space == nil {
			continue
		}
		for _, g := range w.known[spaceOf{st.Ref.KBID, *st.Space}] {
			if from[g] == nil {
				from[g] = &wanted{}
			}
			a := from[g]
			for i := range st.Chunks {
				a.generations, a.keys, a.versions = append(a.generations, st.Ref.Generation), append(a.keys, st.Ref.DocKey), append(a.versions, st.Ref.Version)
				a.ordinals, a.hashes = append(a.ordinals, st.Chunks[i].Ordinal), append(a.hashes, st.Chunks[i].Hash[:])
			}
		}
	}
	for g, a := range from {
		b.Queue(reuseFrom(g), a.generations, a.keys, a.versions, a.ordinals, a.hashes)
	}
}

// queueFinish queues what the versions know of themselves from now on.
func (w *stagingWrites) queueFinish(b *pgx.Batch, all []*Staging, places []int) error {
	var f finishWrites
	var at []int
	for i, st := range all {
		text, err := json.Marshal(orNone(st.Warnings))
		if err != nil {
			return fmt.Errorf("encode warnings: %w", err)
		}
		if st.Ref.Build {
			finishBuild(b, *st, &w.out[places[i]].Reused)
			continue
		}
		f.add(st, string(text))
		at = append(at, places[i])
	}
	if len(at) == 0 {
		return nil
	}
	reused := make([]int, len(at))
	b.Queue(query("stage_finish"), f.keys, f.versions, f.generations, f.chunks, f.tokens, f.warnings, f.titles).Query(func(rows pgx.Rows) error {
		err := scanEach(rows, reused, func(into *int, row pgx.Rows, i *int64) error { return row.Scan(i, into) })
		for i, place := range at {
			w.out[place].Reused = reused[i]
		}
		return err
	})
	return nil
}

type finishWrites struct {
	keys, versions, generations []int64
	chunks, tokens              []int
	warnings, titles            []string
}

func (f *finishWrites) add(st *Staging, warnings string) {
	f.keys, f.versions, f.generations = append(f.keys, st.Ref.DocKey), append(f.versions, st.Ref.Version), append(f.generations, st.Ref.Generation)
	f.chunks, f.tokens = append(f.chunks, len(st.Chunks)), append(f.tokens, st.tokens())
	f.warnings, f.titles = append(f.warnings, warnings), append(f.titles, st.Title)
}

// tokens of all chunks.
func (st *Staging) tokens() int {
	n := 0
	for i := range st.Chunks {
		n += st.Chunks[i].Tokens
	}
	return n
}
