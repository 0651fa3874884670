package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// peek looks at the first bytes of a document: a PDF gets the engine's cache, once it is filled.
func (p *Pool) peek(ctx context.Context, j *job) error {
	const window = 1024
	first := make([]byte, min(window, j.request.Size))
	if _, err := io.ReadFull(j.open(ctx), first); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	if parse.IsPDF(first) || bytes.Contains(first, []byte("multipart/")) { // a mail may bring one
		j.request.CacheDir = p.cacheDir(ctx)
	}
	return nil
}
