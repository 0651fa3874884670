package messages

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Keys of an endpoint's metadata, whose values are JSON Schemas.
const (
	MetadataRequest = "request-schema"
	MetadataReply   = "reply-schema" // of the envelope's data
)

// OperationMetadata describes the two messages of an operation for discovery. It panics on an unknown
// one, a programmer's error.
func OperationMetadata(op string) map[string]string {
	for _, o := range Operations() {
		if o.Name == op {
			return EndpointMetadata(o.Request, o.Reply)
		}
	}
	panic("messages: no operation " + op)
}

// EndpointMetadata describes a request, which is read strictly, and the data of its reply, which may get
// more keys at any time. Both are given as zero values; the schemas are made of their types.
func EndpointMetadata(request, reply any) map[string]string {
	return map[string]string{MetadataRequest: schemaOf(request, true), MetadataReply: schemaOf(reply, false)}
}

func schemaOf(message any, closed bool) string {
	out, err := json.Marshal(schemaWriter{closed}.node(reflect.TypeOf(message)))
	if err != nil {
		panic("messages: schema: " + err.Error()) // maps of strings always encode
	}
	return string(out)
}

// schemaWriter writes schemas of types; closed ones refuse keys they do not know.
type schemaWriter struct{ closed bool }

func (w schemaWriter) node(t reflect.Type) map[string]any {
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
		return w.node(t.Elem())
	case reflect.Struct:
		return w.object(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": w.node(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.node(t.Elem())}
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

func (w schemaWriter) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	w.fields(t, properties, &required)
	out := map[string]any{"type": "object", "properties": properties}
	if w.closed {
		out["additionalProperties"] = false
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// fields adds those of embedded structs too. A key without omitempty is always there in what we write, and
// asked for in what we read.
func (w schemaWriter) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			w.fields(f.Type, properties, required)
		case name == "" || name == "-":
		default:
			properties[name] = w.node(f.Type)
			if !strings.Contains(options, "omitempty") {
				*required = append(*required, name)
			}
		}
	}
}
