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
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
	// KnowledgeBaseNames are the knowledge bases to look in, on the subject of AllScope and nowhere else: up to
	// MaxKnowledgeBases, none twice. An empty list has no results.
	KnowledgeBaseNames []string `json:"knowledgeBaseNames,omitempty"`
	Subspace           []string `json:"subspace,omitempty"`
	// Subspaces takes the place of Subspace where there are KnowledgeBaseNames: the subspaces of each that has
	// any, by its name.
	Subspaces     map[string][]string     `json:"subspaces,omitempty"`
	Query         *RetrievalQuery         `json:"retrievalQuery"`
	Configuration *RetrievalConfiguration `json:"retrievalConfiguration,omitempty"`
	GroupBy       *GroupBy                `json:"groupBy,omitempty"`
	Explain       bool                    `json:"explain,omitempty"`
	Highlight     bool                    `json:"highlight,omitempty"`
	AllowPartial  bool                    `json:"allowPartial,omitempty"`
	// Cursor is the nextCursor of an earlier reply to the very same request: the results after it.
	Cursor string `json:"cursor,omitempty"`
}

// RetrievalQuery is what to look for. Type is TEXT or FILTER. A vector takes the place of the text's in the
// dense leg; the text still feeds the full-text leg and may be left out when only the dense leg is asked for.
// FILTER asks for every chunk whose document meets the filter, in order of subspace, document id and chunk id:
// nothing is ranked, and text and vector play no part.
type RetrievalQuery struct {
	Type   string    `json:"type"`
	Text   string    `json:"text,omitempty"`
	Vector []float32 `json:"vector,omitempty"`
}

// GroupBy gathers results by document: numberOfResults then counts documents. The chunks of a document
// stand side by side, documents in the order of their best chunks.
type GroupBy struct {
	Type           string `json:"type"`                     // document
	ChunksPerGroup int    `json:"chunksPerGroup,omitempty"` // 1 to 100; 0: 1
}

// GroupByDocument is the only type of grouping.
const GroupByDocument = "document"

// The query types.
const (
	QueryText   = "TEXT"
	QueryFilter = "FILTER"
)

// RetrievalConfiguration says how to look.
type RetrievalConfiguration struct {
	SearchType []SearchType     `json:"searchType,omitempty"`
	Dense      *DenseConfig     `json:"denseVectorSearchConfiguration,omitempty"`
	FullText   *FullTextConfig  `json:"fullTextSearchConfiguration,omitempty"`
	Reranking  *RerankingConfig `json:"rerankingConfiguration,omitempty"`
	// ScoreThreshold drops results of a lower similarity: a number from 0 to 1, where only the dense leg
	// runs. null clears the knowledge base's. Threshold reads it, NewThreshold makes it.
	ScoreThreshold json.RawMessage `json:"scoreThreshold,omitempty"`
	Output         *OutputConfig   `json:"outputConfiguration,omitempty"`
	// Filter, as JSON, and FilterExpression, a string in the manner of SQL, are conditions on the metadata of
	// documents; both together must hold. They are one setting: a request that gives either, be it null,
	// takes the place of both of the knowledge base. pkg/pgstore/filter reads them.
	Filter           json.RawMessage `json:"filter,omitempty"`
	FilterExpression json.RawMessage `json:"filterExpression,omitempty"` // Expression reads it, NewExpression makes it
	// Limits tightens the server's limits by a preset, tablestore. Of a knowledge base only.
	Limits string `json:"limits,omitempty"`
	// FilterLimits tightens the server's limits on filters. Of a knowledge base only.
	FilterLimits *FilterLimits `json:"filterLimits,omitempty"`
}

// DenseConfig bounds the dense leg.
type DenseConfig struct {
	NumberOfResults *int `json:"numberOfResults,omitempty"` // N1, 0 to 1000; 0 switches the leg off
	// FallbackToFullText lets the full-text leg answer where the dense leg alone was asked and found
	// nothing at all; default true.
	FallbackToFullText *bool `json:"fallbackToFullText,omitempty"`
}

// FullTextConfig bounds the full-text leg and sets its ranking.
type FullTextConfig struct {
	NumberOfResults *int     `json:"numberOfResults,omitempty"` // N2, 0 to 1000; 0 switches the leg off
	Syntax          string   `json:"syntax,omitempty"`          // plain (default), or simple: "a phrase", prefix*, +required, -excluded
	K1              *float64 `json:"k1,omitempty"`              // default 1.2
	B               *float64 `json:"b,omitempty"`               // default 0.75
}

// Syntaxes of a query text.
const (
	SyntaxPlain  = "plain"
	SyntaxSimple = "simple"
)

// OutputConfig says what results show.
type OutputConfig struct {
	Fields  []string `json:"fields,omitempty"`  // of the metadata; absent: all. Document id, chunk id and content are always there
	Vector  *bool    `json:"vector,omitempty"`  // the stored vector, default false
	Content *bool    `json:"content,omitempty"` // default true; false leaves it empty
}

// RerankingConfig says how the lists are fused and how many results remain.
type RerankingConfig struct {
	Type            RerankType    `json:"type,omitempty"`
	NumberOfResults *int          `json:"numberOfResults,omitempty"` // N3, 1 to 1000
	Weight          *WeightConfig `json:"weightConfiguration,omitempty"`
	RRF             *RRFConfig    `json:"rrfConfiguration,omitempty"`
	Model           *ModelConfig  `json:"modelConfiguration,omitempty"`
}

// WeightConfig holds the weights of WEIGHT: 0, or MinWeight to MaxWeight, and not both 0.
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

// ModelConfig chooses the rerank model of MODEL, among those that the server is set up with.
type ModelConfig struct {
	Provider string `json:"provider,omitempty"` // name of a configured provider; absent: the first of them
	Model    string `json:"model,omitempty"`    // one of the provider's; absent: its first
}

// RetrieveReply is the data of a successful retrieve.
type RetrieveReply struct {
	Results     []RetrievedChunk `json:"retrievalResults"`
	NextCursor  string           `json:"nextCursor,omitempty"` // for the candidates behind these results; absent: there are none
	Truncated   bool             `json:"truncated,omitempty"`  // cut to fit the server's payload limit
	Failures    []KBFailure      `json:"failures,omitempty"`   // of several knowledge bases, those that gave nothing
	Diagnostics Diagnostics      `json:"diagnostics"`
}

// RetrievedChunk is one result. Of several knowledge bases, chunks of the same text are one result: that of
// the best of them, with all of them as its sources.
type RetrievedChunk struct {
	DocID       string          `json:"docId"`
	ChunkID     int             `json:"chunkId"`
	OSSKey      string          `json:"ossKey"`
	Score       float64         `json:"score,omitempty"` // always there, 0 as well, except in results of a FILTER query
	Content     string          `json:"content"`
	Subspace    string          `json:"subspace"`
	Metadata    json.RawMessage `json:"metadata"`
	Title       string          `json:"title,omitempty"`
	HeadingPath []string        `json:"headingPath,omitempty"`
	PageFrom    int             `json:"pageFrom,omitempty"`
	PageTo      int             `json:"pageTo,omitempty"`
	Origin
	RawScore       *float64      `json:"rawScore,omitempty"`
	RawScoreScaled *float64      `json:"rawScoreScaled,omitempty"`
	KBIDs          []string      `json:"kbIds,omitempty"`         // names of the knowledge bases among Sources, sorted
	Sources        []ChunkSource `json:"sources,omitempty"`       // of a retrieval over several knowledge bases, the best first
	RetrievalPath  string        `json:"retrievalPath,omitempty"` // FULL_TEXT_FALLBACK: score is BM25, not a similarity; FILTER: there is no score
	Highlights     []Highlight   `json:"highlights,omitempty"`
	Vector         []float32     `json:"vector,omitempty"`
	Explain        *Explain      `json:"explain,omitempty"`
}

// Retrieval paths other than the usual one.
const (
	PathFallback = "FULL_TEXT_FALLBACK" // the full-text leg gave the result in place of an empty dense one
	PathFilter   = "FILTER"             // a FILTER query gave it: nothing was ranked
)

// MarshalJSON leaves the score out of what was not ranked, and only there.
func (c RetrievedChunk) MarshalJSON() ([]byte, error) {
	type plain RetrievedChunk
	if c.RetrievalPath == PathFilter {
		c.Score = 0
		return json.Marshal(plain(c))
	}
	return json.Marshal(struct {
		DocID   string  `json:"docId"`
		ChunkID int     `json:"chunkId"`
		OSSKey  string  `json:"ossKey"`
		Score   float64 `json:"score"`
		plain
	}{c.DocID, c.ChunkID, c.OSSKey, c.Score, plain(c)})
}

// Highlight is a piece of a result's content that holds words of the query. Offsets are counted in
// characters (code points) of the content, ends exclusive.
type Highlight struct {
	Text  string `json:"text"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Marks []Mark `json:"marks"`
}

// Mark is the place of a word or phrase of the query in the content.
type Mark struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Explain tells where a result's score comes from.
type Explain struct {
	Fusion   string       `json:"fusion"` // WEIGHT, RRF, MODEL, or the name of the only leg
	Dense    *LegDetail   `json:"dense,omitempty"`
	FullText *LegDetail   `json:"fullText,omitempty"`
	Model    *ModelDetail `json:"model,omitempty"` // with MODEL
}

// ModelDetail is what the rerank model says of a result.
type ModelDetail struct {
	Raw     float64 `json:"raw"`               // as the model gave it, larger is better; 0 when it gave none
	Scaled  float64 `json:"scaled"`            // brought to 0..1
	Omitted bool    `json:"omitted,omitempty"` // the model left the result out: it stands behind all others
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
	Generation int64           `json:"generation"` // 0 of several knowledge bases
	Dense      *LegDiagnostics `json:"dense,omitempty"`
	FullText   *LegDiagnostics `json:"fullText,omitempty"`
	Fusion     string          `json:"fusion"`
	Timing     Timing          `json:"timing"`
	Rerank     *RerankReport   `json:"rerank,omitempty"`   // when a rerank model was asked
	Degraded   []string        `json:"degraded,omitempty"` // legs that failed under allowPartial, with the cause
	Dropped    []string        `json:"dropped,omitempty"`  // rerank: no time was left for the model, the order is that of RRF
	Skipped    int             `json:"skipped,omitempty"`  // results of a cursor that are gone meanwhile
	Restarted  bool            `json:"restarted,omitempty"`
	Notes      []string        `json:"notes,omitempty"`
	// KnowledgeBases tells of each of several knowledge bases that answered, in the order of the request.
	KnowledgeBases []KBReport `json:"knowledgeBases,omitempty"`
}

// DroppedRerank stands in Dropped.
const DroppedRerank = "rerank"

// RerankReport tells how the rerank model answered.
type RerankReport struct {
	Provider  string  `json:"provider"`
	Model     string  `json:"model,omitempty"`
	Documents int     `json:"documents"`         // sent
	Cut       int     `json:"cut,omitempty"`     // of those, longer than the provider takes
	Omitted   int     `json:"omitted,omitempty"` // of those, without a score in the answer
	Millis    float64 `json:"ms"`
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
