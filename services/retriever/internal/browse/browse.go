// Package browse answers requests that read knowledge bases, documents and chunks as they are stored.
package browse

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what is read from; *pgstore.Store is one.
type Store interface {
	LoadKB(ctx context.Context, tenant, name string) (pgstore.KB, error)
	ListKBs(ctx context.Context, tenant, after string, limit int) ([]pgstore.KB, error)
	CountDocuments(ctx context.Context, kb pgstore.KB) (messages.DocumentCounts, error)
	GetDocument(ctx context.Context, kbID int64, subspace, docID string, shown pgstore.MetadataCondition) (messages.DocumentInfo, error)
	ListDocuments(ctx context.Context, kbID int64, f pgstore.DocumentFilter, limit int) ([]messages.DocumentInfo, error)
	ListChunks(ctx context.Context, kb pgstore.KB, subspace, docID string, after, limit int, shown pgstore.MetadataCondition) ([]messages.ChunkInfo, error)
}

// Page sizes: by default and at most.
const (
	defaultPage = 50
	maxPage     = 500
)

// Browser answers. ReplyBytes is the size a page may have; a longer one ends earlier, with a token.
// Errors for callers are *messages.Error; an outage of the database is marked by bus.Pause.
type Browser struct {
	Store      Store
	ReplyBytes int
	Limits     messages.RetrieveLimits // of the server
}

// outage marks a database that is away.
func outage(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && pgstore.Retryable(err) {
		return bus.Pause(err, 0)
	}
	return err
}

func pageSize(p messages.Page) (int, error) {
	switch {
	case p.MaxResults == 0:
		return defaultPage, nil
	case p.MaxResults < 0 || p.MaxResults > maxPage:
		return 0, messages.Invalid("maxResults", fmt.Sprintf("must be 1 to %d", maxPage))
	}
	return p.MaxResults, nil
}

// encodeToken and decodeToken carry the place a page ended at.
func encodeToken(place ...string) string {
	data, err := json.Marshal(place)
	if err != nil {
		panic("browse: strings do not encode: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeToken(token string, parts int) ([]string, error) {
	place := make([]string, parts)
	if token == "" {
		return place, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &place)
	}
	if err != nil || len(place) != parts {
		return nil, &messages.Error{Code: messages.CodeCursorInvalid, Field: "nextToken", Message: "is none of this operation"}
	}
	return place, nil
}

// fitting returns how many of a page's items fit the reply, at least one, and whether the listing goes
// on: because items were left out, or because the page was as full as it was asked to be.
func fitting[T any](items []T, limit, room int) (int, bool, error) {
	used := 0
	for i := range items {
		data, err := json.Marshal(&items[i])
		if err != nil {
			return 0, false, fmt.Errorf("encode reply: %w", err)
		}
		if used += len(data) + 1; used > room && i > 0 {
			return i, true, nil
		}
	}
	return len(items), len(items) == limit, nil
}
