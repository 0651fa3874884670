package messages

// MaxKnowledgeBases is how many knowledge bases one retrieval may look in.
const MaxKnowledgeBases = 16

// ChunkSource is a chunk that holds the text of a result of several knowledge bases.
type ChunkSource struct {
	KB       string  `json:"kb"`
	Subspace string  `json:"subspace"`
	DocID    string  `json:"docId"`
	ChunkID  int     `json:"chunkId"`
	Score    float64 `json:"score"` // on the scale of the result's
}

// KBFailure is why one of several knowledge bases gave nothing.
type KBFailure struct {
	KB      string `json:"kb"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// KBReport is the diagnostics of one of several knowledge bases.
type KBReport struct {
	KB         string          `json:"kb"`
	Generation int64           `json:"generation"`
	Dense      *LegDiagnostics `json:"dense,omitempty"`
	FullText   *LegDiagnostics `json:"fullText,omitempty"`
	Degraded   []string        `json:"degraded,omitempty"` // as in Diagnostics
	Restarted  bool            `json:"restarted,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
}
