package filter

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MarshalJSON writes the canonical form: the one of ParseJSON, every number in its shortest exact
// notation. Filters that mean the same tree have the same text, however they were written.
func (l leaf) MarshalJSON() ([]byte, error) {
	if l.op == nil {
		return nil, errors.New("an empty filter has no JSON")
	}
	body := struct {
		Key   string `json:"key"`
		Value any    `json:"value,omitempty"`
	}{Key: l.key}
	switch l.op.takes {
	case takesOne:
		body.Value = l.values[0]
	case takesSet:
		body.Value = l.values
	}
	return json.Marshal(map[string]any{l.op.name: body})
}

// MarshalJSON writes the canonical form, see the one of a single condition. It refuses trees deeper than
// any limit allows.
func (g group) MarshalJSON() ([]byte, error) {
	if g.how == nil {
		return nil, errors.New("an empty filter has no JSON")
	}
	if g.size.depth > maxDepth {
		return nil, fmt.Errorf("a filter nested deeper than %d levels has no JSON", maxDepth)
	}
	return json.Marshal(map[string][]Filter{g.how.name: g.of})
}

// Canonical returns a filter's canonical JSON.
func Canonical(f Filter) (json.RawMessage, error) {
	if f == nil {
		return nil, errors.New("no filter has no JSON")
	}
	return f.MarshalJSON()
}
