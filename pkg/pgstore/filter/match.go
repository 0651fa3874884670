package filter

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// document is the metadata of a document as supplied.
type document map[string]json.RawMessage

// fieldValue is what a document has in a field.
type fieldValue struct {
	present bool
	items   []any // the elements of a list; of a scalar field its one value
}

// Match reports whether a document with this metadata, as supplied, matches. Null and a value that is not
// of its field's type count as absent; elements of a list that are not of its type are left out. Metadata
// that is no JSON object is an error; nothing stands for the empty object.
func (b Bound) Match(metadata json.RawMessage) (bool, error) {
	doc := document{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &doc); err != nil {
			return false, messages.Invalid("metadata", "is no JSON object")
		}
	}
	return b.root != nil && b.root.match(doc), nil
}

func (l boundLeaf) match(doc document) bool { return l.op.match(doc.value(l), l.values) }

func (g boundGroup) match(doc document) bool { return g.how.match(g.of, doc) }

func (d document) value(l boundLeaf) fieldValue {
	raw := bytes.TrimSpace(d[l.key])
	if !l.list {
		v, err := messages.ParseValue(l.key, l.element, raw)
		return fieldValue{present: err == nil, items: []any{v}}
	}
	if len(raw) == 0 || raw[0] != '[' {
		return fieldValue{}
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return fieldValue{}
	}
	out := fieldValue{present: true}
	for _, item := range items {
		if v, err := messages.ParseValue(l.key, l.element, item); err == nil {
			out.items = append(out.items, v)
		}
	}
	return out
}

// holdsAny reports whether any item is one of the wanted values.
func (v fieldValue) holdsAny(wanted []any) bool {
	return v.present && slices.ContainsFunc(v.items, func(item any) bool {
		return slices.ContainsFunc(wanted, func(w any) bool { return same(item, w) })
	})
}

func same(a, b any) bool {
	if at, ok := a.(time.Time); ok {
		return at.Equal(b.(time.Time))
	}
	return a == b
}
