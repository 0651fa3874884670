package client

import (
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
)

// Mode is which lists answer: that of vectors, that of words, or both.
type Mode string

// The modes.
const (
	ModeVector Mode = "vector"
	ModeSparse Mode = "sparse"
	ModeHybrid Mode = "hybrid"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeVector, ModeSparse, ModeHybrid} }

func badMode(m Mode) error {
	return messages.Invalid("mode", fmt.Sprintf("%q is not vector, sparse or hybrid", string(m)))
}

// modeOf is the mode of search types, which are valid.
func modeOf(types []messages.SearchType) Mode {
	dense, text := slices.Contains(types, messages.DenseVector), slices.Contains(types, messages.FullText)
	switch {
	case dense && text:
		return ModeHybrid
	case text:
		return ModeSparse
	}
	return ModeVector
}

// ModesOf returns the modes that an index can answer, its own first. Another index type than hybrid, vector
// and bm25 is INDEX_TYPE_NOT_SUPPORT.
func ModesOf(index messages.IndexType) ([]Mode, error) {
	switch index {
	case messages.IndexTypeVector:
		return []Mode{ModeVector}, nil
	case messages.IndexTypeBM25:
		return []Mode{ModeSparse}, nil
	case messages.IndexTypeHybrid:
		return []Mode{ModeHybrid, ModeVector, ModeSparse}, nil
	}
	return nil, &messages.Error{
		Code: messages.CodeIndexTypeNotSupported, Field: "indexType", Message: fmt.Sprintf("%q is not hybrid, vector or bm25", string(index)),
	}
}

// CheckMode checks that an index can answer a mode: RETRIEVER_MODE_INVALID when it cannot.
func CheckMode(index messages.IndexType, m Mode) error {
	if !slices.Contains(Modes(), m) {
		return badMode(m)
	}
	able, err := ModesOf(index)
	if err != nil {
		return err
	}
	if !slices.Contains(able, m) {
		return &messages.Error{
			Code: messages.CodeRetrieverModeInvalid, Field: "mode", Message: fmt.Sprintf("an index of type %s has no mode %s", index, m),
		}
	}
	return nil
}
