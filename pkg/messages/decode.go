package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// MaxJSONDepth is the deepest nesting a request may have.
const MaxJSONDepth = 64

// DecodeStrict decodes one JSON value into v and refuses, by name and path, every key v does not
// have: keys match to the letter, a key given twice is an error, so is anything after the value.
// Fields of type json.RawMessage, any or map hold what they are given, unchecked. v must be a
// pointer. Errors are VALIDATION_ERROR.
func DecodeStrict(data []byte, v any) error {
	if err := checkDepth(data); err != nil {
		return err
	}
	if err := checkKeys(data, reflect.TypeOf(v), ""); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return decodeError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Invalid("body", "has more than one JSON value")
	}
	return nil
}

func decodeError(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return Invalid(orBody(typed.Field), fmt.Sprintf("must be %s, got %s", jsonName(typed.Type), typed.Value))
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return Invalid("body", "is not valid JSON: "+err.Error())
}

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}

func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Pointer:
		return jsonName(t.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "an integer"
	default:
		return "a number"
	}
}

// checkDepth refuses deep nesting before anything recursive looks at the value.
func checkDepth(data []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case inString:
			inString, escaped = c != '"', c == '\\'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxJSONDepth {
				return Invalid("body", fmt.Sprintf("is nested deeper than %d levels", MaxJSONDepth))
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// checkKeys walks data beside t and reports the first key t lacks.
func checkKeys(data []byte, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawMessage || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil
	case t.Kind() == reflect.Struct:
		return checkObject(data, t, path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return checkArray(data, t.Elem(), path)
	}
	return nil
}

func checkArray(data []byte, elem reflect.Type, path string) error {
	for elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if elem.Kind() != reflect.Struct && elem.Kind() != reflect.Slice {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		return nil // the typed decoding says what is wrong
	}
	for i, item := range items {
		if err := checkKeys(item, elem, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func checkObject(data []byte, t reflect.Type, path string) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil // the typed decoding says what is wrong
	}
	fields, seen := fieldTypes(t), map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return decodeError(err)
		}
		key, ok := tok.(string)
		if !ok {
			return Invalid(orBody(path), "is not valid JSON")
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		ft, known := fields[key]
		if !known {
			return Invalid(at, "is not a known key")
		}
		if seen[key] {
			return Invalid(at, "is given twice")
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return decodeError(err)
		}
		if err := checkKeys(value, ft, at); err != nil {
			return err
		}
	}
	return nil
}

func fieldTypes(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for k, v := range fieldTypes(f.Type) {
				out[k] = v
			}
		case !f.IsExported() || name == "-":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}
