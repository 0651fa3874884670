package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// ValidateMetadata checks a document's metadata against the schema: every key declared, every value of
// its type. Null stands for absent. Absent metadata is the empty object. It returns the object as it is
// to be stored: compact, without nulls.
func (s MetadataSchema) ValidateMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage(`{}`), nil
	}
	if err := checkDepth(raw); err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return nil, Invalid("metadata", "must be a JSON object")
	}
	for name, value := range values {
		at := "metadata." + name
		field, declared := s.Field(name)
		if !declared {
			return nil, Invalid(at, "is not declared by the knowledge base")
		}
		if isNull(value) {
			delete(values, name)
			continue
		}
		if err := checkValue(at, field.Type, value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(values)
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

func checkValue(at string, t MetadataType, raw json.RawMessage) error {
	element, list := t.Element()
	if !list {
		_, err := ParseValue(at, element, raw)
		return err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return Invalid(at, fmt.Sprintf("must be a list of type %s", element))
	}
	for i, item := range items {
		if _, err := ParseValue(fmt.Sprintf("%s[%d]", at, i), element, item); err != nil {
			return err
		}
	}
	return nil
}

// ParseValue reads a scalar of a metadata type: string, int64, float64, bool, or time.Time in UTC with
// millisecond precision. at names the value in errors, which are VALIDATION_ERROR. Integral numbers in
// any notation are long (60, 60.0, 6e1); nothing passes through a float64 on its way to an int64.
func ParseValue(at string, t MetadataType, raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, Invalid(at, "is not valid JSON")
	}
	switch t {
	case TypeString:
		if s, ok := v.(string); ok {
			return s, ValidText(at, s)
		}
	case TypeBoolean:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case TypeLong:
		if n, ok := v.(json.Number); ok {
			return parseLong(at, n)
		}
	case TypeDouble:
		if n, ok := v.(json.Number); ok {
			return parseDouble(at, n)
		}
	case TypeDate:
		if s, ok := v.(string); ok {
			return parseDateField(at, s)
		}
	}
	return nil, Invalid(at, fmt.Sprintf("must be of type %s, got %s", t, kindOf(v)))
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// maxNumberBytes bounds the notation of a number, so that 1e999999999 costs nothing.
const maxNumberBytes = 64

func parseLong(at string, n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	notLong := Invalid(at, fmt.Sprintf("must be an integer of 64 bits, got %s", clipNumber(n)))
	f, err := n.Float64()
	if err != nil || len(n) > maxNumberBytes || math.Abs(f) >= 1<<64 || f != 0 && math.Abs(f) < 1 {
		return nil, notLong
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return nil, notLong
	}
	return r.Num().Int64(), nil
}

func parseDouble(at string, n json.Number) (any, error) {
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, Invalid(at, fmt.Sprintf("must be a finite number, got %s", clipNumber(n)))
	}
	return f, nil
}

func clipNumber(n json.Number) string {
	if len(n) > maxNumberBytes {
		return string(n[:maxNumberBytes]) + "…"
	}
	return string(n)
}

func parseDateField(at, s string) (any, error) {
	t, err := ParseDate(s)
	if err != nil {
		return nil, Invalid(at, err.Error())
	}
	return t, nil
}

// dateLayouts are the accepted forms; those without an offset are UTC.
var dateLayouts = [...]string{
	"2006-01-02", "2006-01-02 15:04:05", "2006-01-02 15:04:05.000", "20060102 150405", "2006-01-02T15:04:05", time.RFC3339Nano,
}

// ParseDate reads a date in one of the forms yyyy-MM-dd, yyyy-MM-dd HH:mm:ss, yyyy-MM-dd HH:mm:ss.SSS,
// yyyyMMdd HHmmss, yyyy-MM-ddTHH:mm:ss and RFC 3339 with up to nine decimals, cut to milliseconds.
func ParseDate(s string) (time.Time, error) {
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, s)
		if err != nil || !exactForm(layout, s) {
			continue
		}
		return t.UTC().Truncate(time.Millisecond), nil
	}
	if len(s) > maxNumberBytes {
		s = s[:maxNumberBytes] + "…"
	}
	return time.Time{}, fmt.Errorf("%q is not a date in an accepted form", strings.ToValidUTF8(s, "�"))
}

// exactForm refuses what time.Parse accepts beyond the layout: fractions of a second that it does not ask
// for.
func exactForm(layout, s string) bool {
	return layout == time.RFC3339Nano || len(layout) == len(s)
}
