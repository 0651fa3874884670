package messages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// IndexType says which legs a knowledge base has.
type IndexType string

// The index types.
const (
	IndexTypeHybrid IndexType = "hybrid"
	IndexTypeVector IndexType = "vector"
	IndexTypeBM25   IndexType = "bm25"
)

// MetadataType is the type of a metadata field.
type MetadataType string

// The metadata types. Dates are strings in one of the formats of ParseDate.
const (
	TypeString      MetadataType = "string"
	TypeLong        MetadataType = "long"
	TypeDouble      MetadataType = "double"
	TypeBoolean     MetadataType = "boolean"
	TypeDate        MetadataType = "date"
	TypeStringList  MetadataType = "string_list"
	TypeLongList    MetadataType = "long_list"
	TypeDoubleList  MetadataType = "double_list"
	TypeBooleanList MetadataType = "boolean_list"
	TypeDateList    MetadataType = "date_list"
)

// Element returns the type of a list's elements, or the type itself, and whether it was a list.
func (t MetadataType) Element() (MetadataType, bool) {
	s, list := strings.CutSuffix(string(t), "_list")
	return MetadataType(s), list
}

func (t MetadataType) valid() bool {
	e, _ := t.Element()
	return slices.Contains([]MetadataType{TypeString, TypeLong, TypeDouble, TypeBoolean, TypeDate}, e)
}

// MetadataField declares one field. Fields may be added later, never removed or given another type.
type MetadataField struct {
	Name     string       `json:"name"`
	Type     MetadataType `json:"type"`
	Internal bool         `json:"internal,omitempty"` // never in results, filters or projections of clients
}

// MetadataSchema is the declared fields of a knowledge base.
type MetadataSchema []MetadataField

// Field returns the declaration of a name.
func (s MetadataSchema) Field(name string) (MetadataField, bool) {
	for _, f := range s {
		if f.Name == name {
			return f, true
		}
	}
	return MetadataField{}, false
}

// Limits of a schema.
const (
	MaxMetadataFields   = 200
	MaxMetadataNameSize = 128
)

var reservedFields = []string{"_uid", "_id", "_type", "_all", "_parent", "_routing", "_index", "_size", "_timestamp", "_ttl", "_score"}

// Validate checks names, types and limits; path names the schema in errors.
func (s MetadataSchema) Validate(path string) error {
	if len(s) > MaxMetadataFields {
		return Invalid(path, fmt.Sprintf("has more than %d fields", MaxMetadataFields))
	}
	seen := map[string]bool{}
	for i, f := range s {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case f.Name == "" || len(f.Name) > MaxMetadataNameSize:
			return Invalid(at+".name", fmt.Sprintf("must have 1 to %d bytes", MaxMetadataNameSize))
		case strings.Contains(f.Name, "."):
			return Invalid(at+".name", "must not contain a dot")
		case slices.Contains(reservedFields, f.Name):
			return Invalid(at+".name", fmt.Sprintf("%q is reserved", f.Name))
		case seen[f.Name]:
			return Invalid(at+".name", fmt.Sprintf("%q is declared twice", f.Name))
		case !f.Type.valid():
			return Invalid(at+".type", fmt.Sprintf("%q is no metadata type", f.Type))
		}
		if err := ValidText(at+".name", f.Name); err != nil {
			return err
		}
		seen[f.Name] = true
	}
	return nil
}

// Chunking is how documents are cut.
type Chunking struct {
	Strategy string `json:"strategy,omitempty"` // tokens (default) or whole
	Size     int    `json:"size,omitempty"`     // tokens a chunk; 0: 400
	Overlap  *int   `json:"overlap,omitempty"`  // tokens repeated from the chunk before; absent: 40, at most a tenth of Size
}

// Chunking strategies.
const (
	ChunkTokens = "tokens" // pieces of Size tokens
	ChunkWhole  = "whole"  // one chunk a document, as long as it fits
)

// Defaults and bounds of chunking, in tokens.
const (
	DefaultChunkSize    = 400
	DefaultChunkOverlap = 40
	MinChunkSize        = 32
	MaxChunkSize        = 8192
)

// WithDefaults returns c with nothing left open.
func (c Chunking) WithDefaults() Chunking {
	if c.Strategy == "" {
		c.Strategy = ChunkTokens
	}
	if c.Strategy != ChunkTokens {
		return c
	}
	if c.Size == 0 {
		c.Size = DefaultChunkSize
	}
	if c.Overlap == nil {
		overlap := min(DefaultChunkOverlap, c.Size/10)
		c.Overlap = &overlap
	}
	return c
}

// Validate checks a resolved configuration; path names it in errors.
func (c Chunking) Validate(path string) error {
	switch c.Strategy {
	case ChunkWhole:
		if c.Size != 0 || c.Overlap != nil {
			return Invalid(path+".size", "strategy whole takes no size and no overlap")
		}
		return nil
	case ChunkTokens:
	default:
		return Invalid(path+".strategy", fmt.Sprintf("%q is not tokens or whole", c.Strategy))
	}
	if c.Size < MinChunkSize || c.Size > MaxChunkSize {
		return Invalid(path+".size", fmt.Sprintf("must be %d to %d tokens", MinChunkSize, MaxChunkSize))
	}
	if c.Overlap == nil || *c.Overlap < 0 || *c.Overlap > c.Size/2 {
		return Invalid(path+".overlap", fmt.Sprintf("must be 0 to %d tokens, half of size", c.Size/2))
	}
	return nil
}

// Embedding is the vector space of a knowledge base. Zero fields take the server's default; a model
// given alone takes what is known of that model.
type Embedding struct {
	Model         string  `json:"model,omitempty"`
	Dims          int     `json:"dims,omitempty"`
	Metric        string  `json:"metric,omitempty"`
	Normalized    *bool   `json:"normalized,omitempty"`
	QueryPrefix   *string `json:"queryPrefix,omitempty"`
	PassagePrefix *string `json:"passagePrefix,omitempty"`
}

// CreateKB is the body of kb_create. Name and schema are fixed for ever, except that fields may be
// added.
type CreateKB struct {
	KnowledgeBaseName string            `json:"knowledgeBaseName"`
	Description       string            `json:"description,omitempty"`
	Tags              map[string]string `json:"tags,omitempty"`
	IndexType         IndexType         `json:"indexType,omitempty"` // default hybrid
	Subspace          bool              `json:"subspace,omitempty"`  // whether documents live in subspaces
	Metadata          MetadataSchema    `json:"metadata,omitempty"`
	Embedding         *Embedding        `json:"embeddingConfiguration,omitempty"`
	Chunking          *Chunking         `json:"chunkingConfiguration,omitempty"`
	Analyzer          string            `json:"analyzer,omitempty"` // default lex1
	Retrieval         json.RawMessage   `json:"retrievalConfiguration,omitempty"`
	MandatoryFilter   json.RawMessage   `json:"mandatoryFilter,omitempty"` // see UpdateKB
}

// MaxDescriptionBytes and MaxTagsBytes bound what people write about a knowledge base.
const (
	MaxDescriptionBytes = 4096
	MaxTagsBytes        = 4096
)

// Validate checks everything that needs no server settings.
func (c *CreateKB) Validate() error {
	if err := ValidateName("knowledgeBaseName", c.KnowledgeBaseName); err != nil {
		return err
	}
	if err := ValidateDescription(c.Description, c.Tags); err != nil {
		return err
	}
	if c.IndexType != "" && !slices.Contains([]IndexType{IndexTypeHybrid, IndexTypeVector, IndexTypeBM25}, c.IndexType) {
		return &Error{Code: CodeIndexTypeNotSupported, Field: "indexType", Message: fmt.Sprintf("%q is not hybrid, vector or bm25", c.IndexType)}
	}
	if c.IndexType == IndexTypeBM25 && c.Embedding != nil {
		return Invalid("embeddingConfiguration", "a bm25 knowledge base has no vectors")
	}
	return c.Metadata.Validate("metadata")
}

// ValidateDescription checks the bounds of description and tags.
func ValidateDescription(description string, tags map[string]string) error {
	if err := validateText("description", description, MaxDescriptionBytes); err != nil {
		return err
	}
	total := 0
	for k, v := range tags {
		if err := ValidText("tags."+k, k+v); err != nil {
			return err
		}
		total += len(k) + len(v)
	}
	if total > MaxTagsBytes {
		return Invalid("tags", fmt.Sprintf("have more than %d bytes", MaxTagsBytes))
	}
	return nil
}

// UpdateKB is the body of kb_update: absent keys leave things as they are, null clears description,
// tags, retrievalConfiguration and mandatoryFilter. Metadata lists fields to add.
//
// MandatoryFilter is a condition on metadata, in JSON or as an expression in a string, that every request
// about documents is under, whatever it says itself. It may name internal fields, and $tenant stands for the
// tenant. pkg/pgstore/filter reads it.
type UpdateKB struct {
	KnowledgeBaseName string          `json:"knowledgeBaseName,omitempty"`
	Description       json.RawMessage `json:"description,omitempty"`
	Tags              json.RawMessage `json:"tags,omitempty"`
	Metadata          MetadataSchema  `json:"metadata,omitempty"`
	Retrieval         json.RawMessage `json:"retrievalConfiguration,omitempty"`
	MandatoryFilter   json.RawMessage `json:"mandatoryFilter,omitempty"`
	// Another space, chunking or analyzer starts a job that builds the index anew beside the live one.
	Embedding *Embedding `json:"embeddingConfiguration,omitempty"`
	Chunking  *Chunking  `json:"chunkingConfiguration,omitempty"`
	Analyzer  string     `json:"analyzer,omitempty"`
}

// Reindexes reports whether the update concerns what an index is made with.
func (u *UpdateKB) Reindexes() bool {
	return u.Embedding != nil || u.Chunking != nil || u.Analyzer != ""
}

// KBInfo describes a knowledge base in replies.
type KBInfo struct {
	KnowledgeBaseName string            `json:"knowledgeBaseName"`
	ID                int64             `json:"id"`
	Description       string            `json:"description,omitempty"`
	Tags              map[string]string `json:"tags,omitempty"`
	IndexType         IndexType         `json:"indexType"`
	Subspace          bool              `json:"subspace"`
	Metadata          MetadataSchema    `json:"metadata"`
	Embedding         *Space            `json:"embeddingConfiguration,omitempty"`
	Chunking          Chunking          `json:"chunkingConfiguration"`
	Analyzer          string            `json:"analyzer"`
	Retrieval         json.RawMessage   `json:"retrievalConfiguration,omitempty"`
	MandatoryFilter   json.RawMessage   `json:"mandatoryFilter,omitempty"`
	Generation        int64             `json:"generation"`
	JobID             int64             `json:"jobId,omitempty"` // of kb_update: the job that the change started
	CreatedAt         time.Time         `json:"createdAt"`
	UpdatedAt         time.Time         `json:"updatedAt"`
	Documents         *DocumentCounts   `json:"documents,omitempty"` // of kb_get
	// Limits hold for queries: the server's, as the knowledge base tightens them. Of kb_get.
	Limits *RetrieveLimits `json:"limits,omitempty"`
}

// DocumentCounts counts the documents of a knowledge base by status.
type DocumentCounts struct {
	Pending  int64 `json:"pending"`
	Indexing int64 `json:"indexing"`
	Ready    int64 `json:"ready"`
	Failed   int64 `json:"failed"`
	Chunks   int64 `json:"chunks"` // retrievable ones
}

// KBRef is the body of kb_get and kb_delete; the name may be left to the subject.
type KBRef struct {
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
}

// Page asks for part of a listing.
type Page struct {
	MaxResults int    `json:"maxResults,omitempty"` // 0: the default; at most the operation's limit
	NextToken  string `json:"nextToken,omitempty"`  // from the page before
}

// KBList is the reply of kb_list, in order of name.
type KBList struct {
	KnowledgeBases []KBInfo `json:"knowledgeBases"`
	NextToken      string   `json:"nextToken,omitempty"`
}
