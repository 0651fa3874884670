package messages

import (
	"fmt"
	"maps"
	"slices"
)

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

// CheckSeveral checks the names of a request to several knowledge bases, and that it says nothing of one alone.
// Errors are VALIDATION_ERROR naming the field.
func (r *RetrieveRequest) CheckSeveral() error {
	names := r.KnowledgeBaseNames
	switch {
	case r.KnowledgeBaseName != "":
		return Invalid("knowledgeBaseName", "is of one knowledge base; of several it is knowledgeBaseNames")
	case r.Subspace != nil:
		return Invalid("subspace", "is of one knowledge base; of several it is subspaces")
	case names == nil:
		return Invalid("knowledgeBaseNames", "is missing")
	case len(names) > MaxKnowledgeBases:
		return Invalid("knowledgeBaseNames", fmt.Sprintf("has %d names, at most %d are allowed", len(names), MaxKnowledgeBases))
	}
	for i, name := range names {
		at := fmt.Sprintf("knowledgeBaseNames[%d]", i)
		if err := ValidateName(at, name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return Invalid(at, fmt.Sprintf("%q is there twice", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Subspaces)) {
		if !slices.Contains(names, name) {
			return Invalid("subspaces", fmt.Sprintf("%q is not among knowledgeBaseNames", clip(name, MaxNameBytes)))
		}
	}
	return nil
}
