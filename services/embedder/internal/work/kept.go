package work

import (
	"crypto/sha256"
	"sync"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
)

// maxKept bounds the vectors remembered between tries: some 6 MB of 384 dimensions.
const maxKept = 4096

// kept holds vectors of messages that failed half way, so that each try comes further than the last
// even where one message takes longer than a try may. Losing them only costs time. Safe for concurrent use.
type kept struct {
	mu      sync.Mutex
	vectors map[keptKey][]float32
}

type keptKey struct {
	space embedding.Space
	hash  [sha256.Size]byte
}

func newKept() *kept { return &kept{vectors: map[keptKey][]float32{}} }

func (k *kept) get(space embedding.Space, text string) []float32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.vectors) == 0 {
		return nil // the usual case: no hash is computed
	}
	return k.vectors[keptKey{space, embedding.Hash(text)}]
}

func (k *kept) keep(space embedding.Space, texts []string, vectors [][]float32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, v := range vectors {
		if v == nil {
			continue
		}
		if len(k.vectors) >= maxKept {
			clear(k.vectors)
		}
		k.vectors[keptKey{space, embedding.Hash(texts[i])}] = v
	}
}

func (k *kept) drop(space embedding.Space, chunks []messages.EmbedChunk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.vectors) == 0 {
		return
	}
	for _, c := range chunks {
		delete(k.vectors, keptKey{space, embedding.Hash(c.Text)})
	}
}
