package messages

import "encoding/json"

// MaxBatchQueries is how many queries a batch may hold.
const MaxBatchQueries = 100

// BatchRetrieve is the body of batch_retrieve: several requests with one deadline. When one fails all do,
// and the error's field begins with that one's place, as in queries[2].
type BatchRetrieve struct {
	Queries []RetrieveRequest `json:"queries"`
}

// BatchReply is the data of a successful batch, in the order of its queries.
type BatchReply struct {
	Results []RetrieveReply `json:"results"`
}

// SearchReply is the data of a successful search: what retrieve finds, in the form that retrievers built
// upon a store take.
type SearchReply struct {
	Results     []SearchResult `json:"searchResults"`
	NextCursor  string         `json:"nextCursor,omitempty"`
	Truncated   bool           `json:"truncated,omitempty"`
	Diagnostics Diagnostics    `json:"diagnostics"`
}

// SearchResult is a chunk as a store returns it.
type SearchResult struct {
	ID             string          `json:"id"` // document id, "#" and chunk id; not unique across subspaces
	Text           string          `json:"text"`
	Score          float64         `json:"score"`    // larger is better
	Metadata       json.RawMessage `json:"metadata"` // of the document, without internal fields
	Subspace       string          `json:"subspace"`
	DocID          string          `json:"docId"`
	ChunkID        int             `json:"chunkId"`
	RawScore       *float64        `json:"rawScore,omitempty"`
	RawScoreScaled *float64        `json:"rawScoreScaled,omitempty"`
	RetrievalPath  string          `json:"retrievalPath,omitempty"`
	Vector         []float32       `json:"vector,omitempty"`
}
