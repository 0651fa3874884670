package messages

import (
	"encoding/json"
	"math"
	"time"
)

// DocumentRef is the body of documents_get.
type DocumentRef struct {
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
	DocID             string `json:"docId"`
	Subspace          string `json:"subspace,omitempty"`
}

// ListDocuments is the body of documents_list, in order of subspace and id.
type ListDocuments struct {
	KnowledgeBaseName string         `json:"knowledgeBaseName,omitempty"`
	Subspace          []string       `json:"subspace,omitempty"`
	Status            DocumentStatus `json:"status,omitempty"`
	Page
}

// DocumentList is a page of documents.
type DocumentList struct {
	Documents []DocumentInfo `json:"documents"`
	NextToken string         `json:"nextToken,omitempty"`
}

// DocumentInfo tells the state of a document: of its newest accepted version, and which version
// readers see.
type DocumentInfo struct {
	DocID       string          `json:"docId"`
	Subspace    string          `json:"subspace"`
	OSSKey      string          `json:"ossKey"`
	Title       string          `json:"title,omitempty"`
	ContentType string          `json:"contentType,omitempty"`
	SizeBytes   int64           `json:"sizeBytes"`
	Metadata    json.RawMessage `json:"metadata,omitempty"` // internal fields left out
	Status      DocumentStatus  `json:"status"`
	Version     int64           `json:"version"`
	LiveVersion int64           `json:"liveVersion,omitempty"` // 0: nothing is retrievable
	Chunks      int             `json:"chunks"`                // of the newest version, once staged
	Reused      int             `json:"reused"`                // of them, vectors that were known
	Embedded    int             `json:"embedded"`              // of them, vectors stored so far; 0 while Indexing when a replica answers
	Tokens      int             `json:"tokens,omitempty"`
	Reactivated int             `json:"reactivated,omitempty"` // chunks that were inactive in the version before
	Lines       *Lines          `json:"lines,omitempty"`       // of a document that is split: it has no chunks of its own and no live version
	Warnings    []string        `json:"warnings,omitempty"`
	Error       *Error          `json:"error,omitempty"`
	SubmittedAt time.Time       `json:"submittedAt"`
	UpdatedAt   time.Time       `json:"updatedAt"`
}

// ListChunks is the body of documents_chunks: the live chunks of a document in order.
type ListChunks struct {
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
	DocID             string `json:"docId"`
	Subspace          string `json:"subspace,omitempty"`
	Page
}

// ChunkList is a page of chunks.
type ChunkList struct {
	Chunks    []ChunkInfo `json:"chunks"`
	NextToken string      `json:"nextToken,omitempty"`
}

// ChunkInfo is one chunk of a document's live version.
type ChunkInfo struct {
	ChunkID     int      `json:"chunkId"` // ordinal in the document, from 0
	Content     string   `json:"content"`
	HeadingPath []string `json:"headingPath,omitempty"`
	PageFrom    int      `json:"pageFrom,omitempty"`
	PageTo      int      `json:"pageTo,omitempty"`
	Origin
	Tokens int         `json:"tokens"`
	Status ChunkStatus `json:"status"`
}

// ChunkStatus says whether a chunk can be found.
type ChunkStatus string

// The statuses of a chunk. A new version of its document makes all chunks active.
const (
	ChunkActive   ChunkStatus = "active"
	ChunkInactive ChunkStatus = "inactive"
)

// UpdateChunk is the body of chunks_update: it hides a chunk of a document's live version from every
// search, or shows it again.
type UpdateChunk struct {
	KnowledgeBaseName string      `json:"knowledgeBaseName,omitempty"`
	DocID             string      `json:"docId"`
	Subspace          string      `json:"subspace,omitempty"`
	ChunkID           int         `json:"chunkId"` // ordinal in the document, from 0
	Status            ChunkStatus `json:"status"`
}

// ChunkState is the reply of chunks_update.
type ChunkState struct {
	DocID    string      `json:"docId"`
	Subspace string      `json:"subspace"`
	ChunkID  int         `json:"chunkId"`
	Status   ChunkStatus `json:"status"`
}

// Validate checks form and bounds.
func (u *UpdateChunk) Validate() error {
	if err := (&Delete{DocID: u.DocID, Subspace: u.Subspace}).Validate(); err != nil {
		return err
	}
	if u.ChunkID < 0 || u.ChunkID > math.MaxInt32 {
		return Invalid("chunkId", "must be the number of a chunk, from 0")
	}
	if u.Status != ChunkActive && u.Status != ChunkInactive {
		return Invalid("status", "must be active or inactive")
	}
	return nil
}

// DeadLetter is a message that could not be processed.
type DeadLetter struct {
	ID        int64     `json:"id"`
	KB        string    `json:"knowledgeBaseName,omitempty"`
	Subspace  string    `json:"subspace,omitempty"`
	DocID     string    `json:"docId,omitempty"`
	Version   int64     `json:"version,omitempty"`
	Stage     string    `json:"stage"`
	Error     Error     `json:"error"`
	Attempts  int       `json:"attempts"`
	Subject   string    `json:"subject"`
	SizeBytes int       `json:"sizeBytes"`
	State     string    `json:"state"` // open, replayed or discarded
	At        time.Time `json:"at"`
}

// ListDeadLetters is the body of dlq_list, newest first.
type ListDeadLetters struct {
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
	Stage             string `json:"stage,omitempty"`
	State             string `json:"state,omitempty"` // default open
	Page
}

// DeadLetterList is a page of dead letters.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"deadLetters"`
	NextToken   string       `json:"nextToken,omitempty"`
}

// DeadLetterRef is the body of dlq_get, dlq_replay and dlq_discard.
type DeadLetterRef struct {
	ID int64 `json:"id"`
}

// DeadLetterDetail is the reply of dlq_get.
type DeadLetterDetail struct {
	DeadLetter
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"` // base64, at most 256 KB of it
}
