package postings

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// MaxSegmentDocs is the largest number of chunks in a segment, so that an ordinal fits 16 bits.
const MaxSegmentDocs = 1 << 16

// Caps of stored numbers; larger values are stored as the cap.
const (
	MaxTF  = 255
	MaxLen = 1<<16 - 1
)

// ErrCorrupt marks stored bytes or rows that this package cannot have written.
var ErrCorrupt = errors.New("corrupt postings")

// Posting is one row: the chunks of one segment that hold one term. Data is shared and never modified.
type Posting struct {
	Term int64  // TermHash of the term
	Seg  int64  // id of the segment; zero until the caller has given the segment an id
	N    int    // entries in Data, at least 1
	Data []byte // see the package comment
}

// Entry is one decoded entry of a posting row.
type Entry struct {
	Ord uint16 // ordinal of the chunk in its segment
	TF  uint8  // occurrences, 1..MaxTF
}

// AppendEntries decodes p, a row of a segment of docs chunks, and appends its entries to dst. It
// allocates at most what p.N entries need, and p.N is checked against len(p.Data) and docs first. On
// an error, which wraps ErrCorrupt, the returned slice is dst without the entries.
func AppendEntries(dst []Entry, p Posting, docs int) ([]Entry, error) {
	if err := checkCount(p.N, len(p.Data), docs); err != nil {
		return dst, fmt.Errorf("decode term %d of segment %d: %w", p.Term, p.Seg, err)
	}
	out, ok := decode(slices.Grow(dst, p.N), p.Data, p.N, docs)
	if !ok {
		return dst, fmt.Errorf("decode term %d of segment %d: %w: malformed data", p.Term, p.Seg, ErrCorrupt)
	}
	return out, nil
}

func checkCount(n, size, docs int) error {
	if docs > MaxSegmentDocs {
		return fmt.Errorf("%w: segment of %d chunks, limit %d", ErrCorrupt, docs, MaxSegmentDocs)
	}
	if n < 1 || n > docs || n > size {
		return fmt.Errorf("%w: %d entries in %d bytes for %d chunks", ErrCorrupt, n, size, docs)
	}
	return nil
}

// decode appends n entries; dst has room for them. It is the hot loop of every query. Whether an entry has a tf
// byte is close to random, so that part has no branch: the byte after the head is always read, when there
// is one, and multiplied away.
func decode(dst []Entry, data []byte, n, docs int) ([]Entry, bool) {
	ord, i := -1, 0
	wrong := uint16(0) // its top bit is set by a tf byte below 2
	out := dst[len(dst) : len(dst)+n]
	for at := range out {
		if i >= len(data) {
			return dst, false
		}
		head := uint32(data[i])
		i++
		if head >= 0x80 {
			var ok bool
			if head, i, ok = longHead(data, i, head); !ok {
				return dst, false
			}
		}
		if ord += int(head>>1) + 1; ord >= docs {
			return dst, false
		}
		more := uint8(head & 1)
		next := uint8(1)
		if i < len(data) {
			next = data[i]
		}
		wrong |= (uint16(next) - 2) & -uint16(more)
		out[at] = Entry{Ord: uint16(ord), TF: 1 + (next-1)*more} //nolint:gosec // ord < docs <= 65,536
		i += int(more)
	}
	return dst[:len(dst)+n], i == len(data) && wrong < 1<<15
}

// longHead reads the second and third byte of a uvarint whose first byte is head. Three bytes hold any
// legal value; a zero last byte is not the shortest form and therefore refused.
func longHead(data []byte, i int, head uint32) (uint32, int, bool) {
	head &= 0x7f
	for shift := 7; shift <= 14; shift += 7 {
		if i >= len(data) {
			return 0, i, false
		}
		b := data[i]
		i++
		head |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return head, i, b != 0
		}
	}
	return 0, i, false
}

func headOf(gap int, tf uint8) uint64 {
	head := uint64(gap) << 1 //nolint:gosec // gaps are not negative: ordinals ascend
	if tf > 1 {
		head |= 1
	}
	return head
}

func appendEntry(dst []byte, gap int, tf uint8) []byte {
	dst = binary.AppendUvarint(dst, headOf(gap, tf))
	if tf > 1 {
		dst = append(dst, tf)
	}
	return dst
}

func entrySize(gap int, tf uint8) int {
	size := 1
	for head := headOf(gap, tf); head >= 0x80; head >>= 7 {
		size++
	}
	if tf > 1 {
		size++
	}
	return size
}

// EncodeLens packs chunk lengths, two bytes little-endian each; a length over MaxLen is stored as
// MaxLen, a negative one as 0.
func EncodeLens(lens []int) []byte {
	out := make([]byte, 0, 2*len(lens))
	for _, n := range lens {
		out = binary.LittleEndian.AppendUint16(out, uint16(min(max(n, 0), MaxLen))) //nolint:gosec // clamped
	}
	return out
}

// DecodeLens unpacks what EncodeLens wrote. An odd number of bytes wraps ErrCorrupt.
func DecodeLens(data []byte) ([]int, error) {
	if len(data)%2 != 0 {
		return nil, fmt.Errorf("decode lengths: %w: %d bytes", ErrCorrupt, len(data))
	}
	out := make([]int, len(data)/2)
	for i := range out {
		out[i] = lenAt(data, i)
	}
	return out, nil
}

func lenAt(lens []byte, ord int) int {
	return int(binary.LittleEndian.Uint16(lens[2*ord:]))
}

// arena cuts byte slices from large blocks: posting rows are many and tiny. The zero value is ready.
type arena struct{ free []byte }

const arenaBlock = 64 << 10

// take returns an empty slice with room for exactly n bytes.
func (a *arena) take(n int) []byte {
	if n > len(a.free) {
		if n > arenaBlock/4 {
			return make([]byte, 0, n)
		}
		a.free = make([]byte, arenaBlock)
	}
	out := a.free[:0:n]
	a.free = a.free[n:]
	return out
}
