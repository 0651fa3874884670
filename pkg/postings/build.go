package postings

import (
	"errors"
	"fmt"
	"slices"
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
	b := builder{
		index: make(map[int64]int32, total/4),
		lists: make([]termList, 0, total/4),
		occs:  make([]occurrence, 0, total),
	}
	for ord := range docs {
		if err := b.add(ord, docs[ord].Terms); err != nil {
			return nil, nil, fmt.Errorf("build segment: chunk %d: %w", docs[ord].ChunkID, err)
		}
	}
	return seg, b.postings(), nil
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

// builder collects occurrences in document order, then writes every list into memory of known size.
type builder struct {
	index map[int64]int32 // term -> position in lists
	lists []termList
	occs  []occurrence
}

type termList struct {
	term int64
	n    int32
	size int32 // bytes of the encoded list
	ord  int32 // ordinal of the last occurrence, -1 before the first
	occ  int32 // position of the last occurrence in occs
	data []byte
}

type occurrence struct {
	list int32
	ord  uint16
	tf   uint8
}

func (b *builder) add(ord int, terms []TermTF) error {
	for _, t := range terms {
		if t.TF < 1 {
			return fmt.Errorf("%w: term %d: frequency %d", ErrInput, t.Term, t.TF)
		}
		at, ok := b.index[t.Term]
		if !ok {
			at = int32(len(b.lists)) //nolint:gosec // bounded by the occurrences of a segment
			b.index[t.Term] = at
			b.lists = append(b.lists, termList{term: t.Term, ord: -1})
		}
		l := &b.lists[at]
		if int(l.ord) == ord {
			b.occs[l.occ].tf = clampTF(int(b.occs[l.occ].tf) + min(t.TF, MaxTF))
			continue
		}
		l.ord, l.occ = int32(ord), int32(len(b.occs)) //nolint:gosec // ord <= 65,535
		l.n++
		b.occs = append(b.occs, occurrence{list: at, ord: uint16(ord), tf: clampTF(t.TF)}) //nolint:gosec // as above
	}
	return nil
}

func clampTF(tf int) uint8 { return uint8(min(tf, MaxTF)) } //nolint:gosec // clamped, never negative

func (b *builder) postings() []Posting {
	b.rewind()
	for _, o := range b.occs {
		l := &b.lists[o.list]
		l.size += int32(entrySize(int(o.ord)-int(l.ord)-1, o.tf)) //nolint:gosec // at most 4
		l.ord = int32(o.ord)
	}
	b.rewind()
	var mem arena
	for i := range b.lists {
		b.lists[i].data = mem.take(int(b.lists[i].size))
	}
	for _, o := range b.occs {
		l := &b.lists[o.list]
		l.data = appendEntry(l.data, int(o.ord)-int(l.ord)-1, o.tf)
		l.ord = int32(o.ord)
	}
	slices.SortFunc(b.lists, func(a, b termList) int { return compare(a.term, b.term) })
	out := make([]Posting, len(b.lists))
	for i, l := range b.lists {
		out[i] = Posting{Term: l.term, N: int(l.n), Data: l.data}
	}
	return out
}

func (b *builder) rewind() {
	for i := range b.lists {
		b.lists[i].ord = -1
	}
}
