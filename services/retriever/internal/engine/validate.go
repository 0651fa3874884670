package engine

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
)

// CheckQuery checks what needs no knowledge base.
func CheckQuery(limits messages.RetrieveLimits, req *messages.RetrieveRequest) error {
	switch {
	case req.KnowledgeBaseNames != nil:
		return messages.Invalid("knowledgeBaseNames", "belongs on the subject of several knowledge bases, _all")
	case req.Subspaces != nil:
		return messages.Invalid("subspaces", "belongs to several knowledge bases; of one it is subspace")
	}
	return checkQuery(limits, req)
}

func checkQuery(limits messages.RetrieveLimits, req *messages.RetrieveRequest) error {
	q := req.Query
	switch {
	case q == nil:
		return messages.Invalid("retrievalQuery", "is missing")
	case q.Type == "":
		return messages.Invalid("retrievalQuery.type", "is missing")
	case q.Type != messages.QueryText && q.Type != messages.QueryFilter:
		return messages.Invalid("retrievalQuery.type", "must be TEXT or FILTER")
	case q.Type == messages.QueryText && strings.TrimSpace(q.Text) == "" && q.Vector == nil:
		return messages.Invalid("retrievalQuery.text", "is empty")
	}
	if err := checkGroup(req.GroupBy); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(q.Text); n > limits.QueryRunes {
		return messages.Invalid("retrievalQuery.text", fmt.Sprintf("has %d characters, at most %d are allowed", n, limits.QueryRunes))
	}
	return messages.ValidText("retrievalQuery.text", q.Text)
}

// maxGroup is how many chunks of a document a group may hold.
const maxGroup = 100

func checkGroup(g *messages.GroupBy) error {
	switch {
	case g == nil:
		return nil
	case g.Type != messages.GroupByDocument:
		return messages.Invalid("groupBy.type", "must be document")
	case g.ChunksPerGroup < 0 || g.ChunksPerGroup > maxGroup:
		return messages.Invalid("groupBy.chunksPerGroup", fmt.Sprintf("must be 1 to %d", maxGroup))
	}
	return nil
}

// Subspaces returns the subspaces to search, nil for all: those of a knowledge base without subspaces.
func Subspaces(enabled bool, limits messages.RetrieveLimits, names []string) ([]string, error) {
	if !enabled {
		if len(names) == 0 || len(names) == 1 && names[0] == messages.DefaultSubspace {
			return nil, nil
		}
		return nil, messages.Invalid("subspace", "the knowledge base has no subspaces")
	}
	switch {
	case len(names) == 0:
		return nil, messages.Invalid("subspace", "must name the subspaces to search")
	case len(names) > limits.Subspaces:
		return nil, messages.Invalid("subspace", fmt.Sprintf("names %d subspaces, at most %d are allowed", len(names), limits.Subspaces))
	}
	for i, name := range names {
		if err := messages.ValidateName(fmt.Sprintf("subspace[%d]", i), name); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out), nil
}
