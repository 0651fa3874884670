package filter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Typed returns a document's metadata in the form that filters compare: one JSON object with the fields
// that have a value, longs as integers, doubles in their shortest notation, dates as milliseconds since
// 1970 (UTC), lists of these. It belongs in a jsonb column beside the metadata as supplied, which alone
// goes into results. Metadata that does not fit the schema is a VALIDATION_ERROR, as of
// MetadataSchema.ValidateMetadata.
func Typed(schema messages.MetadataSchema, metadata json.RawMessage) (json.RawMessage, error) {
	checked, err := schema.ValidateMetadata(metadata)
	if err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(checked, &values); err != nil {
		return nil, fmt.Errorf("read checked metadata: %w", err)
	}
	out := make(map[string]any, len(values))
	for name, raw := range values {
		field, _ := schema.Field(name)
		if out[name], err = typedValue("metadata."+name, field.Type, raw); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

func typedValue(at string, t messages.MetadataType, raw json.RawMessage) (any, error) {
	element, list := t.Element()
	if !list {
		v, err := messages.ParseValue(at, element, raw)
		return storedForm(v), err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("read checked list: %w", err)
	}
	out := make([]any, len(items))
	for i, item := range items {
		v, err := messages.ParseValue(fmt.Sprintf("%s[%d]", at, i), element, item)
		if err != nil {
			return nil, err
		}
		out[i] = storedForm(v)
	}
	return out, nil
}

// storedForm is how a value of a field stands in the typed column.
func storedForm(v any) any {
	if date, ok := v.(time.Time); ok {
		return date.UnixMilli()
	}
	return v
}
