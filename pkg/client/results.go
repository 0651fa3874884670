package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// SearchResult is a chunk as a store returns it. As JSON it must have id, text and score, of which only
// results of FILTER queries may lack the last. Metadata decodes with numbers as json.Number, and is never
// nil then.
type SearchResult struct {
	ID             string         `json:"id"` // document id, "#" and chunk id
	Text           string         `json:"text"`
	Score          float64        `json:"score"` // larger is better
	Metadata       map[string]any `json:"metadata"`
	Subspace       string         `json:"subspace,omitempty"`
	DocID          string         `json:"docId,omitempty"`
	ChunkID        int            `json:"chunkId"` // ordinal in the document, from 0
	RawScore       *float64       `json:"rawScore,omitempty"`
	RawScoreScaled *float64       `json:"rawScoreScaled,omitempty"` // 0 to 1
	RetrievalPath  string         `json:"retrievalPath,omitempty"`  // messages.PathFallback, messages.PathFilter
	Vector         []float32      `json:"vector,omitempty"`
}

// UnmarshalJSON refuses a result without its required keys.
func (r *SearchResult) UnmarshalJSON(data []byte) error {
	type plain SearchResult
	var out plain
	seen, err := decodeResult(data, &out, &out.Metadata)
	if err == nil {
		required := []string{"id", "text", "score"}
		if out.RetrievalPath == messages.PathFilter {
			required = required[:2]
		}
		err = require("search result", seen, required)
	}
	if err == nil {
		*r = SearchResult(out)
	}
	return err
}

// RetrievalResult is a passage as a retriever returns it. As JSON it must have text and score.
type RetrievalResult struct {
	Text           string         `json:"text"`
	Score          float64        `json:"score"` // larger is better
	Metadata       map[string]any `json:"metadata"`
	DocID          string         `json:"docId,omitempty"`
	ChunkID        string         `json:"chunkId,omitempty"` // document id, "#" and the chunk's ordinal, in every mode
	Subspace       string         `json:"subspace,omitempty"`
	RawScore       *float64       `json:"rawScore,omitempty"`
	RawScoreScaled *float64       `json:"rawScoreScaled,omitempty"`
	RetrievalPath  string         `json:"retrievalPath,omitempty"`
}

// UnmarshalJSON refuses a result without its required keys.
func (r *RetrievalResult) UnmarshalJSON(data []byte) error {
	type plain RetrievalResult
	var out plain
	seen, err := decodeResult(data, &out, &out.Metadata)
	if err == nil {
		err = require("retrieval result", seen, []string{"text", "score"})
	}
	if err == nil {
		*r = RetrievalResult(out)
	}
	return err
}

// MultiKBRetrievalResult is a passage that one or several knowledge bases hold. As JSON it must have text,
// score, rawScore and rawScoreScaled. Each score is the highest of all knowledge bases, on its own.
type MultiKBRetrievalResult struct {
	Text           string         `json:"text"`
	Score          float64        `json:"score"`
	RawScore       float64        `json:"rawScore"`
	RawScoreScaled float64        `json:"rawScoreScaled"` // 0 to 1
	KBIDs          []string       `json:"kbIds"`          // names of the knowledge bases that hold the text
	Metadata       map[string]any `json:"metadata"`       // of the best source
	DocID          string         `json:"docId,omitempty"`
	ChunkID        string         `json:"chunkId,omitempty"`
	Sources        []ResultSource `json:"sources,omitempty"`
}

// ResultSource is one place where a passage stands.
type ResultSource struct {
	KB       string  `json:"kb"`
	Subspace string  `json:"subspace,omitempty"`
	DocID    string  `json:"docId,omitempty"`
	ChunkID  string  `json:"chunkId,omitempty"`
	Score    float64 `json:"score"`
}

// UnmarshalJSON refuses a result without its required keys.
func (e *MultiKBRetrievalResult) UnmarshalJSON(data []byte) error {
	type plain MultiKBRetrievalResult
	out := plain{KBIDs: []string{}}
	seen, err := decodeResult(data, &out, &out.Metadata)
	if err == nil {
		err = require("multi-KB retrieval result", seen, []string{"text", "score", "rawScore", "rawScoreScaled"})
	}
	if err == nil {
		*e = MultiKBRetrievalResult(out)
	}
	return err
}

// SearchReply is what Search returns.
type SearchReply struct {
	Results     []SearchResult       `json:"searchResults"`
	NextCursor  string               `json:"nextCursor,omitempty"`
	Truncated   bool                 `json:"truncated,omitempty"`
	Diagnostics messages.Diagnostics `json:"diagnostics"`
}

// decodeResult decodes without losing digits and returns the keys that have a value. Metadata that is not there is
// empty.
func decodeResult(data []byte, into any, metadata *map[string]any) (seen map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(data, &seen); err != nil {
		return nil, err
	}
	maps.DeleteFunc(seen, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(into)
	if *metadata == nil {
		*metadata = map[string]any{}
	}
	return seen, err
}

func require(what string, seen map[string]json.RawMessage, keys []string) error {
	for _, key := range keys {
		if _, ok := seen[key]; !ok {
			return fmt.Errorf("a %s lacks %s", what, key)
		}
	}
	return nil
}

// passage turns a store's result into a retriever's. They share nothing that can change.
func passage(r SearchResult) RetrievalResult {
	out := RetrievalResult{
		Text: r.Text, Score: r.Score, Metadata: maps.Clone(r.Metadata), DocID: r.DocID, ChunkID: r.ID, Subspace: r.Subspace,
		RawScore: copyOf(r.RawScore), RawScoreScaled: copyOf(r.RawScoreScaled), RetrievalPath: r.RetrievalPath,
	}
	if out.Metadata == nil {
		out.Metadata = map[string]any{}
	}
	if at := strings.LastIndexByte(r.ID, '#'); out.DocID == "" && at >= 0 {
		out.DocID = r.ID[:at]
	}
	return out
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
