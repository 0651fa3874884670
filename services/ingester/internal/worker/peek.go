package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// peek looks at the first bytes of a document. A PDF gets the engine's cache, once it is filled; a process that reads
// what is no small text is not used again, whatever it says.
func (p *Pool) peek(ctx context.Context, j *job) error {
	const window = 1024
	first := make([]byte, min(window, j.request.Size))
	if _, err := io.ReadFull(j.open(ctx), first); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	if parse.IsPDF(first) || bytes.Contains(first, []byte("multipart/")) { // a mail may bring one
		j.request.CacheDir = p.cacheDir(ctx)
	}
	j.light = j.request.Size <= lightBytes && !parse.IsPDF(first) && bytes.IndexByte(first, 0) < 0
	return nil
}
