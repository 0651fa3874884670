package pgstore

import "github.com/jackc/pgx/v5"

// ownerWrites makes documents lines of others, or of none.
type ownerWrites struct {
	keys              []int64
	parents, versions []*int64
	numbers           []*int
}

func (w *ownerWrites) add(key int64, l Line) {
	w.keys = append(w.keys, key)
	if l == (Line{}) {
		w.parents, w.versions, w.numbers = append(w.parents, nil), append(w.versions, nil), append(w.numbers, nil)
		return
	}
	w.parents, w.versions, w.numbers = append(w.parents, &l.Parent), append(w.versions, &l.Version), append(w.numbers, &l.Number)
}

func (w *ownerWrites) queue(b *pgx.Batch) {
	if len(w.keys) > 0 {
		b.Queue(query("intake_owner"), w.keys, w.parents, w.versions, w.numbers)
	}
}

// splitWrites names versions of documents that are, or are no longer, split.
type splitWrites struct{ keys, versions []int64 }

func (w *splitWrites) add(key, version int64) {
	w.keys, w.versions = append(w.keys, key), append(w.versions, version)
}

func (w *splitWrites) queue(b *pgx.Batch, name string) {
	if len(w.keys) > 0 {
		b.Queue(query(name), w.keys, w.versions)
	}
}
