package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ValidateMetadata checks a document's metadata against the schema: every key declared, every value of
// its type, none given twice. Null stands for absent; absent metadata is the empty object. It returns the
// object as it is to be stored: compact, without nulls.
func (s MetadataSchema) ValidateMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || isNull(raw) {
		return json.RawMessage(`{}`), nil
	}
	if err := scanJSON("metadata", raw); err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		at := "metadata." + name
		field, declared := s.Field(name)
		if !declared {
			return Invalid(at, "is not declared by the knowledge base")
		}
		if _, twice := values[name]; twice {
			return Invalid(at, "is given twice")
		}
		values[name] = value
		if isNull(value) {
			return nil
		}
		return checkValue(at, field.Type, value)
	})
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(values, func(_ string, value json.RawMessage) bool { return isNull(value) })
	return json.Marshal(values)
}

// eachMember calls visit with the members of a JSON object that scanJSON let pass, in their order, until one is
// refused.
func eachMember(raw json.RawMessage, visit func(name string, value json.RawMessage) error) error {
	whole := reader{data: raw}
	if object, ok := whole.skip(); !ok || !whole.end() || object[0] != '{' {
		return Invalid("metadata", "must be a JSON object")
	}
	var err error
	r := reader{data: raw}
	r.members(func(name []byte) bool {
		value, _ := r.skip()
		err = visit(string(name), value)
		return err == nil
	})
	return err
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

func checkValue(at string, t MetadataType, raw json.RawMessage) error {
	element, list := t.Element()
	if !list {
		return checkScalar(at, element, raw)
	}
	var items []json.RawMessage
	if !readStrict(raw, &items) {
		return Invalid(at, fmt.Sprintf("must be a list of type %s", element))
	}
	for i, item := range items {
		if err := checkScalar(fmt.Sprintf("%s[%d]", at, i), element, item); err != nil {
			return err
		}
	}
	return nil
}

func checkScalar(at string, t MetadataType, raw json.RawMessage) error {
	if _, err := ParseValue(at, t, raw); err != nil {
		return err
	}
	if n := json.Number(bytes.TrimSpace(raw)); (t == TypeLong || t == TypeDouble) && !storable(n) {
		return Invalid(at, "has too many digits: "+clipNumber(n))
	}
	return nil
}

// ParseValue reads a scalar of a metadata type: string, int64, float64, bool, or time.Time in UTC with
// millisecond precision. at names the value in errors, which are VALIDATION_ERROR. Integral numbers in
// any notation are long (60, 60.0, 6e1); nothing passes through a float64 on its way to an int64.
func ParseValue(at string, t MetadataType, raw json.RawMessage) (any, error) {
	v, ok := scalar(raw)
	if !ok {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return nil, Invalid(at, "is not valid JSON")
		}
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

// scalar reads a string, number, boolean or null; ok is false where raw is anything else, or not plainly one.
func scalar(raw json.RawMessage) (v any, ok bool) {
	r := reader{data: raw}
	switch r.peek() {
	case '"':
		v, ok = r.text()
	case 't':
		v, ok = true, r.word("true")
	case 'f':
		v, ok = false, r.word("false")
	case 'n':
		v, ok = nil, r.word("null")
	default:
		n := r.number()
		v, ok = json.Number(n), n != nil
	}
	return v, ok && r.end() && utf8.Valid(raw)
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
	if f == 0 { // nought, or too small for a float64: its exponent must never be worked out
		if mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e"); strings.ContainsAny(mantissa, "123456789") {
			return nil, notLong
		}
		return int64(0), nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return nil, notLong
	}
	return r.Num().Int64(), nil
}

// Postgres keeps every digit of a number and refuses those with more than some sixteen thousand; no float64
// needs a tenth of this.
const (
	maxStoredDigits   = 400
	maxStoredExponent = 400
)

// storable reports whether a number, as it is written, can be kept as it is written.
func storable(n json.Number) bool {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(string(n)), "e")
	if len(mantissa) > maxStoredDigits || !scientific {
		return len(mantissa) <= maxStoredDigits
	}
	e, err := strconv.Atoi(exponent)
	return err == nil && -maxStoredExponent <= e && e <= maxStoredExponent
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
		if !exactForm(layout, s) {
			continue
		}
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date in an accepted form", clip(strings.ToValidUTF8(s, "\ufffd"), maxNumberBytes))
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)

// exactForm refuses what time.Parse accepts beyond the layout: hours of one digit, commas, and more or
// fewer decimals than asked for.
func exactForm(layout, s string) bool {
	if layout == time.RFC3339Nano {
		return rfc3339.MatchString(s)
	}
	return len(layout) == len(s) && !strings.Contains(s, ",")
}
