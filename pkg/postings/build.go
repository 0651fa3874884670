package postings

import (
	"errors"
	"fmt"
)

// ErrInput marks arguments that no caller should pass: the text names the field and the reason.
var ErrInput = errors.New("invalid input")

// Doc is one analysed chunk.
type Doc struct {
	ChunkID int64
	Len     int // tokens, repeats included
	Terms   []TermTF
}

// TermTF is a term of a chunk and how often it occurs there.
type TermTF struct {
	Term int64 // TermHash
	TF   int   // at least 1
}

// Build makes one segment of docs, in their order, and its posting rows by ascending term. A term listed
// twice in one Doc counts with the sum of its frequencies. The ids of the segment and of the rows are
// zero: the caller sets them. It fails with ErrTooLarge over MaxSegmentDocs and with ErrInput on a
// negative length or a frequency below 1; docs is not modified or kept.
func Build(docs []Doc) (*Segment, []Posting, error) {
	seg, total, err := describe(docs)
	if err != nil {
		return nil, nil, fmt.Errorf("build segment: %w", err)
	}
	occs, err := gather(docs, total)
	if err != nil {
		return nil, nil, fmt.Errorf("build segment: %w", err)
	}
	return seg, encode(occs), nil
}

func describe(docs []Doc) (*Segment, int, error) {
	if len(docs) > MaxSegmentDocs {
		return nil, 0, fmt.Errorf("%w: %d chunks, limit %d", ErrTooLarge, len(docs), MaxSegmentDocs)
	}
	ids, lens, total := make([]int64, len(docs)), make([]int, len(docs)), 0
	var sum int64
	for i := range docs {
		if docs[i].Len < 0 {
			return nil, 0, fmt.Errorf("%w: chunk %d: length %d", ErrInput, docs[i].ChunkID, docs[i].Len)
		}
		ids[i], lens[i] = docs[i].ChunkID, docs[i].Len
		sum += int64(min(docs[i].Len, MaxLen))
		total += len(docs[i].Terms)
	}
	return &Segment{N: len(docs), ChunkIDs: ids, Lens: EncodeLens(lens), SumLen: sum}, total, nil
}

// gather lists what occurs in docs, total times in all, by ascending term, then ordinal.
func gather(docs []Doc, total int) ([]occurrence, error) {
	d := newDealer(total)
	for ord := range docs {
		for _, t := range docs[ord].Terms {
			if t.TF < 1 {
				return nil, fmt.Errorf("chunk %d: %w: term %d: frequency %d", docs[ord].ChunkID, ErrInput, t.Term, t.TF)
			}
			d.count(keyOf(t.Term))
		}
	}
	d.counted()
	for ord := range docs {
		for _, t := range docs[ord].Terms {
			d.deal(occurrence{key: keyOf(t.Term), ord: uint16(ord), tf: clampTF(t.TF)}) //nolint:gosec // ord <= 65,535
		}
	}
	return d.sorted(), nil
}

func clampTF(tf int) uint8 { return uint8(min(tf, MaxTF)) } //nolint:gosec // clamped, never negative

// encode makes rows of sorted occurrences. Of a term that a document lists more than once it sums the frequencies, in
// place.
func encode(occs []occurrence) []Posting {
	occs = summed(occs)
	rows, size := measure(occs)
	out, data := make([]Posting, 0, rows), make([]byte, 0, size)
	for i := 0; i < len(occs); {
		key, first, from, last := occs[i].key, i, len(data), -1
		for ; i < len(occs) && occs[i].key == key; i++ {
			ord := int(occs[i].ord)
			data = appendEntry(data, ord-last-1, occs[i].tf)
			last = ord
		}
		out = append(out, Posting{Term: termOf(key), N: i - first, Data: data[from:len(data):len(data)]})
	}
	return out
}

// summed makes one of what a document says of a term.
func summed(occs []occurrence) []occurrence {
	n := 0
	for i, o := range occs {
		if i > 0 && occs[n-1].key == o.key && occs[n-1].ord == o.ord {
			occs[n-1].tf = clampTF(int(occs[n-1].tf) + int(o.tf))
			continue
		}
		occs[n] = o
		n++
	}
	return occs[:n]
}

// measure returns how many rows occs make and the bytes of their data.
func measure(occs []occurrence) (rows, size int) {
	last := -1
	for i, o := range occs {
		if i == 0 || o.key != occs[i-1].key {
			rows, last = rows+1, -1
		}
		size += entrySize(int(o.ord)-last-1, o.tf)
		last = int(o.ord)
	}
	return rows, size
}
