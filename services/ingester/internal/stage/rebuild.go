package stage

import (
	"context"
	"crypto/sha256"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/chunk"
)

// again makes the staging of a build out of the chunks that readers see, where the new configuration would cut the
// same ones out of the content: only what differs is computed. ok is false when the content must be parsed.
func (h *Handler) again(ctx context.Context, ref messages.Ref, v pgstore.Version) (st pgstore.Staging, ok bool, err error) {
	if v.From == nil || !sameChunks(*v.From, v.Generation) {
		return st, false, nil
	}
	built, err := h.store.BuiltIn(ctx, ref, v.From.ID)
	if err != nil || len(built.Chunks) == 0 { // it failed there
		return st, false, err
	}
	st = pgstore.Staging{Ref: ref, Title: built.Title, Space: v.Generation.Space, Warnings: built.Warnings, Chunks: built.Chunks}
	return st, true, renew(&st, *v.From, v.Generation)
}

// sameChunks reports whether two configurations cut a content into the same chunks: sizes are counted in tokens
// of the model.
func sameChunks(a, b pgstore.Generation) bool {
	if a.Parser != b.Parser || a.Chunking.Strategy != b.Chunking.Strategy || a.Chunking.Size != b.Chunking.Size {
		return false
	}
	x, y := a.Chunking.Overlap, b.Chunking.Overlap
	return (x == nil) == (y == nil) && (x == nil || *x == *y) && chunk.SameCounter(modelOf(a.Space), modelOf(b.Space))
}

func modelOf(space *messages.Space) string {
	if space == nil {
		return ""
	}
	return space.Model
}

// renew analyses chunks anew and hashes what the model will see, where that is another than before.
func renew(st *pgstore.Staging, from, to pgstore.Generation) error {
	var analyzer *lexical.Analyzer
	if from.Analyzer != to.Analyzer || from.Fingerprint != to.Fingerprint {
		var err error
		if analyzer, err = lexical.Lookup(to.Analyzer); err != nil {
			return err
		}
	}
	before, after := prefixOf(from.Space), prefixOf(to.Space)
	for i := range st.Chunks {
		c := &st.Chunks[i]
		if analyzer != nil {
			lex := analyzer.Document(c.Context, c.Content)
			c.Lex, c.LexLen = pgstore.NewTSVector(lex), lex.Length
		}
		if before != after {
			c.Hash = sha256.Sum256([]byte(messages.Space{PassagePrefix: after}.PassageText(c.Context, c.Content)))
		}
	}
	return nil
}

func prefixOf(space *messages.Space) string {
	if space == nil {
		return ""
	}
	return space.PassagePrefix
}
