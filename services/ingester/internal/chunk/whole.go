package chunk

import (
	"fmt"
	"math"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// asWhole makes one chunk of a document of at most MaxTextBytes, and as few as it can of a longer one.
func asWhole(doc parse.Document, c Config) ([]Chunk, []string) {
	p := &packer{doc: doc, counter: c.Counter, size: math.MaxInt / 4, bytes: MaxTextBytes}
	chunks := p.run()
	if len(chunks) > 1 {
		return chunks, []string{fmt.Sprintf(
			"the text is longer than one chunk of %d bytes and was cut into %d", MaxTextBytes, len(chunks))}
	}
	return chunks, nil
}
