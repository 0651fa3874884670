// Package schema describes Go message types as JSON Schema, for the metadata of endpoints.
package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Of returns the JSON Schema of a message, given as a zero value.
func Of(message any) string {
	out, err := json.Marshal(node(reflect.TypeOf(message)))
	if err != nil {
		panic("schema: " + err.Error()) // maps of strings always encode
	}
	return string(out)
}

func node(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case reflect.TypeFor[json.Number]():
		return map[string]any{"type": "number"}
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return node(t.Elem())
	case reflect.Struct:
		return object(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": node(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": node(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "integer"}
	}
}

func object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	fields(t, properties, &required)
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields(f.Type, properties, required)
		case name == "" || name == "-":
		default:
			properties[name] = node(f.Type)
			if !strings.Contains(options, "omitempty") {
				*required = append(*required, name)
			}
		}
	}
}
