package pgstore_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// TestReadingIsBounded reads chunks, some of whose contents are stored apart, until bytes are full, in the order of Keep.
func TestReadingIsBounded(t *testing.T) {
	l := newLab(t)
	l.newKB("kb", "cosine", false)
	rng := rand.New(rand.NewPCG(1, 2))
	var chunks []string
	for i := range 60 {
		chunks = append(chunks, fmt.Sprintf("é common %02d %s", i, strings.Repeat(fmt.Sprint(rng.Uint64()), 500*(i%2)+1)))
	}
	l.put(messages.DefaultSubspace, "doc", chunks, nil, rng)
	read := func(n int, reading pgstore.Reading) []pgstore.Content {
		t.Helper()
		return l.search(pgstore.SearchPlan{Text: l.textPlan("common", 100), Reading: reading, Vectors: reading.Hashes, Keep: func(found pgstore.Found) []int64 {
			var ids []int64
			for i := range n { // from the last to the first
				ids = append(ids, found.Matches[len(found.Matches)-1-i].ChunkID)
			}
			return ids
		}}).Kept
	}
	for _, c := range []struct {
		name    string
		n       int
		reading pgstore.Reading
		whole   int
	}{
		{"no bound", 60, pgstore.Reading{Hashes: true}, 60},
		{"a few are read whole", pgstore.UnboundedChunks, pgstore.Reading{Bytes: 1}, pgstore.UnboundedChunks},
		{"the first one is", 60, pgstore.Reading{Bytes: 1, Prefix: 3, Hashes: true}, 1},
		{"until they are full", 60, pgstore.Reading{Bytes: 30_000, Hashes: true}, 0},
		{"everything fits", 60, pgstore.Reading{Bytes: 10 << 20, Prefix: 3}, 60},
		{"metadata alone", 60, pgstore.Reading{Bytes: 100, NoContent: true}, 0},
	} {
		got, used := read(c.n, c.reading), 0
		for i, k := range got {
			want := chunks[59-i]
			beyond := i >= c.whole
			if c.whole == 0 {
				beyond = used > c.reading.Bytes
			}
			used += len(`{"of": "doc"}`)
			if c.reading.Hashes { // the vector: header, dimensions and four halves, twice
				used += 2 * (4 + 4 + 4*2)
			}
			if !c.reading.NoContent {
				used += len(want)
			}
			content := want
			if beyond {
				content = string([]rune(want)[:c.reading.Prefix])
			}
			if c.reading.NoContent {
				content = ""
			}
			if k.Beyond != beyond || k.Content != content || (k.Metadata == nil) != beyond {
				t.Errorf("%s: chunk %d of %d: beyond %v, want %v; content of %d bytes, want %d; metadata %q", c.name, i, len(got), k.Beyond, beyond, len(k.Content), len(content), k.Metadata)
			}
			if sum := sha256.Sum256([]byte(want)); c.reading.Hashes && string(k.Hash) != string(sum[:]) || !c.reading.Hashes && k.Hash != nil {
				t.Errorf("%s: chunk %d: hash %x", c.name, i, k.Hash)
			}
			if c.reading.Hashes && (len(k.Vector) == 0) != beyond {
				t.Errorf("%s: chunk %d has the vector %v", c.name, i, k.Vector)
			}
		}
		if n := len(got); n != c.n {
			t.Errorf("%s: %d chunks, want %d", c.name, n, c.n)
		}
	}
}
