package postings_test

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-project/weir/pkg/postings"
)

// FuzzAppendEntries: arbitrary bytes either fail with ErrCorrupt, or are exactly what Build writes.
func FuzzAppendEntries(f *testing.F) {
	f.Add([]byte{1, 2, 0xd7, 4, 255}, 2, 301)
	f.Add([]byte{0x80, 0x80, 0x80, 1}, 1, 65536)
	f.Add([]byte{0x80, 0}, 1, 10)
	f.Add([]byte{0, 0}, 1<<40, 1<<41)
	f.Add([]byte{1, 1}, 1, 10)
	f.Fuzz(func(t *testing.T, data []byte, n, docs int) {
		entries, err := postings.AppendEntries(nil, postings.Posting{N: n, Data: data}, docs)
		if err != nil {
			if !errors.Is(err, postings.ErrCorrupt) || entries != nil {
				t.Fatalf("got %d entries and error %v", len(entries), err)
			}
			return
		}
		if len(entries) != n || cap(entries) > 2*len(data)+64 {
			t.Fatalf("got %d entries (room for %d) of %d bytes, want %d", len(entries), cap(entries), len(data), n)
		}
		build := make([]postings.Doc, docs)
		for _, e := range entries {
			build[e.Ord].Terms = []postings.TermTF{{TF: int(e.TF)}}
		}
		_, rows, err := postings.Build(build)
		if err != nil || len(rows) != 1 || !reflect.DeepEqual(rows[0].Data, data) || rows[0].N != n {
			t.Fatalf("rebuild of %x gives %v, %v", data, rows, err)
		}
	})
}

// FuzzMerge reads documents from the input, splits them in two segments and compares with one.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{3, 1, 2, 0, 9, 9, 200, 1, 0, 0}, uint8(1))
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, uint8(9))
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		docs := docsOf(data)
		at := min(int(cut), len(docs))
		whole, wholeRows, err := postings.Build(docs)
		if err != nil {
			t.Fatal(err)
		}
		a, aRows, err := postings.Build(docs[:at])
		if err != nil {
			t.Fatal(err)
		}
		b, bRows, err := postings.Build(docs[at:])
		if err != nil {
			t.Fatal(err)
		}
		seg, rows, err := postings.Merge([]postings.Part{{Segment: a, Postings: aRows}, {Segment: b, Postings: bRows}})
		if err != nil {
			t.Fatal(err)
		}
		if seg.SumLen != whole.SumLen || seg.N != whole.N || len(rows) != len(wholeRows) {
			t.Fatalf("got %d chunks and %d rows, want %d and %d", seg.N, len(rows), whole.N, len(wholeRows))
		}
		for i := range rows {
			if !reflect.DeepEqual(rows[i], wholeRows[i]) {
				t.Fatalf("row %d: got %v, want %v", i, rows[i], wholeRows[i])
			}
		}
	})
}

// docsOf makes a chunk of every four bytes: length, skipped chunks, term, frequency.
func docsOf(data []byte) []postings.Doc {
	var docs []postings.Doc
	for len(data) >= 4 && len(docs) < 5000 {
		v := binary.LittleEndian.Uint32(data)
		data = data[4:]
		docs = append(docs, make([]postings.Doc, v>>8&0xff)...)
		docs = append(docs, postings.Doc{
			ChunkID: int64(len(docs)),
			Len:     int(v & 0xff),
			Terms:   []postings.TermTF{{Term: int64(v >> 16 & 0x0f), TF: 1 + int(v>>24)}},
		})
	}
	return docs
}
