package publish

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Metadata builds the metadata of documents from a JSON object (empty: none) and pairs "key=value", which
// win over it. The types are those of the schema; a key of a list type may be given several times, or
// once with a JSON array. Errors are VALIDATION_ERROR.
func Metadata(object string, pairs []string, schema messages.MetadataSchema) (json.RawMessage, error) {
	all := map[string]any{}
	if object != "" {
		if err := messages.DecodeStrict([]byte(object), &all); err != nil {
			return nil, messages.Invalid("metadata", "--meta-json must be a JSON object: "+err.Error())
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		if err := addPair(all, given, pair, schema); err != nil {
			return nil, err
		}
	}
	for key := range all {
		if _, ok := schema.Field(key); !ok {
			return nil, undeclared(key, schema)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return messages.Encode(all)
}

func addPair(all map[string]any, given map[string]bool, pair string, schema messages.MetadataSchema) error {
	key, text, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return messages.Invalid("metadata", fmt.Sprintf("%q is not key=value", pair))
	}
	field, ok := schema.Field(key)
	if !ok {
		return undeclared(key, schema)
	}
	element, list := field.Type.Element()
	if list && strings.HasPrefix(text, "[") {
		var values []any
		if err := messages.DecodeStrict([]byte(text), &values); err != nil {
			return messages.Invalid("metadata."+key, "is no JSON array")
		}
		all[key], given[key] = values, true
		return nil
	}
	value, err := typed(element, text)
	if err != nil {
		return messages.Invalid("metadata."+key, err.Error())
	}
	switch {
	case !list && given[key]:
		return messages.Invalid("metadata."+key, "is given twice and is no list")
	case !list:
		all[key] = value
	case !given[key]:
		all[key] = []any{value}
	default:
		all[key] = append(all[key].([]any), value)
	}
	given[key] = true
	return nil
}

func typed(t messages.MetadataType, text string) (any, error) {
	switch t {
	case messages.TypeLong:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a long, %q is none", text)
		}
		return n, nil
	case messages.TypeDouble:
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("must be a double, %q is none", text)
		}
		return json.Number(text), nil
	case messages.TypeBoolean:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("must be true or false, not %q", text)
		}
		return text == "true", nil
	}
	return text, nil // strings and dates
}

func undeclared(key string, schema messages.MetadataSchema) error {
	names := []string{}
	for _, f := range schema {
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return messages.Invalid("metadata."+key, "is not declared: the knowledge base has no metadata fields")
	}
	slices.Sort(names)
	return messages.Invalid("metadata."+key, "is not declared; declared are "+strings.Join(names, ", "))
}
