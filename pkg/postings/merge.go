package postings

import (
	"fmt"
)

// Part is one input of a merge.
type Part struct {
	Segment  *Segment
	Postings []Posting // all rows of the segment, by ascending term
	Dead     Bitmap    // ordinals to drop, nil for none; see Segment.MarkDead
}

// Merge joins parts into one new segment (with id zero) and its rows by ascending term. Chunks keep the
// order of the parts; dead ones are dropped. When every chunk is dead the result has N = 0 and no rows.
// It fails with ErrTooLarge when more than MaxSegmentDocs chunks would live on, and with ErrCorrupt on
// rows that cannot belong to their segment.
func Merge(parts []Part) (*Segment, []Posting, error) {
	var out []Posting
	seg, err := MergeTo(parts, func(p Posting) error {
		out = append(out, p)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return seg, out, nil
}

// MergeTo is Merge with the rows handed to emit one by one, by ascending term. An error of emit ends the
// merge and is returned as it is. Emitted data is not reused.
func MergeTo(parts []Part, emit func(Posting) error) (*Segment, error) {
	m, err := newMerger(parts)
	if err != nil {
		return nil, fmt.Errorf("merge segments: %w", err)
	}
	for {
		term, ok := m.lowestTerm()
		if !ok {
			return m.seg, nil
		}
		p, err := m.join(term)
		if err != nil {
			return nil, fmt.Errorf("merge segments: %w", err)
		}
		if p.N == 0 {
			continue
		}
		if err := emit(p); err != nil {
			return nil, err
		}
	}
}

type merger struct {
	seg     *Segment
	sources []source
	mem     arena
	buf     []byte
	entries []Entry
}

// source is a part during a merge: rows not yet taken, and where its ordinals go.
type source struct {
	Part
	base  int     // new ordinal of ordinal 0, when nothing is dead
	remap []int32 // old ordinal -> new one or -1; nil when nothing is dead
}

func newMerger(parts []Part) (*merger, error) {
	m := &merger{seg: &Segment{}, sources: make([]source, len(parts))}
	seen := make(map[*Segment]bool, len(parts))
	m.reserve(parts)
	for i, p := range parts {
		if err := p.Segment.checkShape(); err != nil {
			return nil, err
		}
		if seen[p.Segment] {
			return nil, fmt.Errorf("%w: segment %d given twice", ErrInput, p.Segment.ID)
		}
		seen[p.Segment] = true
		m.sources[i] = source{Part: p, base: m.seg.N}
		m.adopt(&m.sources[i])
		if m.seg.N > MaxSegmentDocs {
			return nil, fmt.Errorf("%w: more than %d live chunks", ErrTooLarge, MaxSegmentDocs)
		}
	}
	return m, nil
}

func (m *merger) reserve(parts []Part) {
	docs := 0
	for _, p := range parts {
		docs += len(p.Segment.ChunkIDs)
	}
	m.seg.ChunkIDs = make([]int64, 0, min(docs, MaxSegmentDocs))
	m.seg.Lens = make([]byte, 0, 2*min(docs, MaxSegmentDocs))
}

// adopt appends the live chunks of a source to the new segment.
func (m *merger) adopt(src *source) {
	s := src.Segment
	if src.Dead.Count() > 0 {
		src.remap = make([]int32, s.N)
	}
	for ord := range s.N {
		if src.remap != nil {
			if src.Dead.Has(ord) {
				src.remap[ord] = -1
				continue
			}
			src.remap[ord] = int32(m.seg.N) //nolint:gosec // at most twice MaxSegmentDocs
		}
		m.seg.ChunkIDs = append(m.seg.ChunkIDs, s.ChunkIDs[ord])
		m.seg.Lens = append(m.seg.Lens, s.Lens[2*ord], s.Lens[2*ord+1])
		m.seg.SumLen += int64(s.Len(ord))
		m.seg.N++
	}
}

func (m *merger) lowestTerm() (term int64, ok bool) {
	for i := range m.sources {
		rows := m.sources[i].Postings
		if len(rows) > 0 && (!ok || rows[0].Term < term) {
			term, ok = rows[0].Term, true
		}
	}
	return term, ok
}

// join takes the rows of term off all sources and makes one of them; N is 0 when all its chunks are dead.
func (m *merger) join(term int64) (Posting, error) {
	out, last := Posting{Term: term}, -1
	m.buf = m.buf[:0]
	for i := range m.sources {
		src := &m.sources[i]
		if len(src.Postings) == 0 || src.Postings[0].Term != term {
			continue
		}
		row := src.Postings[0]
		src.Postings = src.Postings[1:]
		if len(src.Postings) > 0 && src.Postings[0].Term <= term {
			return out, fmt.Errorf("%w: rows of segment %d not by ascending term", ErrCorrupt, src.Segment.ID)
		}
		n, newLast, err := m.appendRow(src, row, last)
		if err != nil {
			return out, err
		}
		out.N += n
		last = newLast
	}
	out.Data = append(m.mem.take(len(m.buf)), m.buf...)
	return out, nil
}

// appendRow adds the live entries of row to m.buf, after the ordinal last, and returns how many there
// were and the new last ordinal. The entries are decoded, and so checked, in any case; when nothing is
// dead only the first is written anew.
func (m *merger) appendRow(src *source, row Posting, last int) (int, int, error) {
	entries, err := AppendEntries(m.entries[:0], row, src.Segment.N)
	if err != nil {
		return 0, 0, err
	}
	m.entries = entries
	if src.remap == nil {
		first := entries[0]
		m.buf = appendEntry(m.buf, src.base+int(first.Ord)-last-1, first.TF)
		m.buf = append(m.buf, row.Data[entrySize(int(first.Ord), first.TF):]...)
		return row.N, src.base + int(entries[len(entries)-1].Ord), nil
	}
	n := 0
	for _, e := range entries {
		if ord := int(src.remap[e.Ord]); ord >= 0 {
			m.buf = appendEntry(m.buf, ord-last-1, e.TF)
			last = ord
			n++
		}
	}
	return n, last, nil
}
