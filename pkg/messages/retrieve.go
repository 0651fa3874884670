package messages

import "encoding/json"

// SearchType is a leg of retrieval.
type SearchType string

// The search types; both together are hybrid retrieval.
const (
	DenseVector SearchType = "DENSE_VECTOR"
	FullText    SearchType = "FULL_TEXT"
)

// RerankType is a way of fusing the lists of both legs.
type RerankType string

// The rerank types.
const (
	RerankWeight RerankType = "WEIGHT"
	RerankRRF    RerankType = "RRF"
	RerankModel  RerankType = "MODEL"
)

// RetrieveRequest asks for the chunks most relevant to a query. Pointers and raw fields are absent
// when nil: a request gives part of the configuration, the knowledge base and the system the rest.
type RetrieveRequest struct {
	KnowledgeBaseName string                  `json:"knowledgeBaseName,omitempty"`
	Subspace          []string                `json:"subspace,omitempty"`
	Query             *RetrievalQuery         `json:"retrievalQuery"`
	Configuration     *RetrievalConfiguration `json:"retrievalConfiguration,omitempty"`
	Explain           bool                    `json:"explain,omitempty"`
	AllowPartial      bool                    `json:"allowPartial,omitempty"`
}

// RetrievalQuery is what to look for. Type is TEXT.
type RetrievalQuery struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
}

// QueryText is the query type of a text.
const QueryText = "TEXT"

// RetrievalConfiguration says how to look.
type RetrievalConfiguration struct {
	SearchType []SearchType     `json:"searchType,omitempty"`
	Dense      *DenseConfig     `json:"denseVectorSearchConfiguration,omitempty"`
	FullText   *FullTextConfig  `json:"fullTextSearchConfiguration,omitempty"`
	Reranking  *RerankingConfig `json:"rerankingConfiguration,omitempty"`
}

// DenseConfig bounds the dense leg.
type DenseConfig struct {
	NumberOfResults *int `json:"numberOfResults,omitempty"` // N1, 0 to 1000; 0 switches the leg off
}

// FullTextConfig bounds the full-text leg and sets its ranking.
type FullTextConfig struct {
	NumberOfResults *int     `json:"numberOfResults,omitempty"` // N2, 0 to 1000; 0 switches the leg off
	K1              *float64 `json:"k1,omitempty"`              // default 1.2
	B               *float64 `json:"b,omitempty"`               // default 0.75
}

// RerankingConfig says how the lists are fused and how many results remain.
type RerankingConfig struct {
	Type            RerankType    `json:"type,omitempty"`
	NumberOfResults *int          `json:"numberOfResults,omitempty"` // N3, 1 to 1000
	Weight          *WeightConfig `json:"weightConfiguration,omitempty"`
	RRF             *RRFConfig    `json:"rrfConfiguration,omitempty"`
}

// WeightConfig holds the weights of WEIGHT: finite, not negative, not both 0.
type WeightConfig struct {
	Dense    *float64 `json:"denseVectorSearchWeight,omitempty"`
	FullText *float64 `json:"fullTextSearchWeight,omitempty"`
}

// RRFConfig holds the weights and the constant of reciprocal rank fusion.
type RRFConfig struct {
	Dense    *float64     `json:"denseVectorSearchWeight,omitempty"`
	FullText *float64     `json:"fullTextSearchWeight,omitempty"`
	K        *json.Number `json:"k,omitempty"` // an integer of 1 or more
}

// RetrieveReply is the data of a successful retrieve.
type RetrieveReply struct {
	Results     []RetrievedChunk `json:"retrievalResults"`
	Truncated   bool             `json:"truncated,omitempty"` // cut to fit the server's payload limit
	Diagnostics Diagnostics      `json:"diagnostics"`
}

// RetrievedChunk is one result.
type RetrievedChunk struct {
	DocID          string          `json:"docId"`
	ChunkID        int             `json:"chunkId"`
	OSSKey         string          `json:"ossKey"`
	Score          float64         `json:"score"`
	Content        string          `json:"content"`
	Subspace       string          `json:"subspace"`
	Metadata       json.RawMessage `json:"metadata"`
	Title          string          `json:"title,omitempty"`
	HeadingPath    []string        `json:"headingPath,omitempty"`
	PageFrom       int             `json:"pageFrom,omitempty"`
	PageTo         int             `json:"pageTo,omitempty"`
	RawScore       *float64        `json:"rawScore,omitempty"`
	RawScoreScaled *float64        `json:"rawScoreScaled,omitempty"`
	Explain        *Explain        `json:"explain,omitempty"`
}

// Explain tells where a result's score comes from.
type Explain struct {
	Fusion   string     `json:"fusion"` // WEIGHT, RRF, or the name of the only leg
	Dense    *LegDetail `json:"dense,omitempty"`
	FullText *LegDetail `json:"fullText,omitempty"`
}

// LegDetail is a result's place in one leg.
type LegDetail struct {
	Rank   int     `json:"rank,omitempty"` // from 1; absent when the leg's list did not hold the result
	Raw    float64 `json:"raw"`            // similarity (larger is nearer) or BM25 score
	Scaled float64 `json:"scaled"`         // as it entered the fusion
	Weight float64 `json:"weight"`
}

// Diagnostics tells how the answer came about.
type Diagnostics struct {
	Generation int64           `json:"generation"`
	Dense      *LegDiagnostics `json:"dense,omitempty"`
	FullText   *LegDiagnostics `json:"fullText,omitempty"`
	Fusion     string          `json:"fusion"`
	Timing     Timing          `json:"timing"`
	Degraded   []string        `json:"degraded,omitempty"` // legs that failed under allowPartial, with the cause
	Restarted  bool            `json:"restarted,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
}

// LegDiagnostics tells how one leg answered.
type LegDiagnostics struct {
	Exact      bool    `json:"exact"`
	Index      string  `json:"index,omitempty"` // hnsw, segments, or none for a scan
	Candidates int     `json:"candidates"`
	Terms      int     `json:"terms,omitempty"` // of the query, full-text leg
	Millis     float64 `json:"ms"`
}

// Timing is where the time went, in milliseconds.
type Timing struct {
	EmbedMillis float64 `json:"embedMs"`
	SQLMillis   float64 `json:"sqlMs"`
	ScoreMillis float64 `json:"scoreMs"`
	TotalMillis float64 `json:"totalMs"`
}
