package messages

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxJSONDepth is the deepest nesting a request may have.
const MaxJSONDepth = 64

// DecodeStrict decodes one JSON value into v and refuses, by name and path, every key v does not
// have: keys match to the letter, a key given twice is an error, so is anything after the value. Text
// that is not valid UTF-8 or holds half of a surrogate pair is refused, never repaired. So is null in an array, as some
// encoders write NaN, where it would pass for 0, "" or an empty object. Fields of type
// json.RawMessage, any or map hold what they are given, their keys unchecked. v must be a pointer.
// Errors are VALIDATION_ERROR. Time and memory are linear in data.
func DecodeStrict(data []byte, v any) error {
	if utf8.Valid(data) && readStrict(data, v) {
		return nil
	}
	return decodeSlowly(data, v)
}

// decodeSlowly is DecodeStrict in several passes, which find out what is wrong and where.
func decodeSlowly(data []byte, v any) error {
	if err := scanJSON("body", data); err != nil {
		return err
	}
	if err := newWalker(data, false).check(v); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return misfit(data, v, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Invalid("body", "has more than one JSON value")
	}
	return nil
}

// misfit names the field that err, of decoding data into v, is about: encoding/json tells neither the
// index in an array nor, for some types, any name.
func misfit(data []byte, v any, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		if named := newWalker(data, true).check(v); named != nil {
			return named
		}
	}
	return decodeError("body", err)
}

// decodeError is the error of a value at path.
func decodeError(path string, err error) error {
	var (
		typed   *json.UnmarshalTypeError
		known   *Error
		corrupt base64.CorruptInputError
	)
	switch {
	case errors.As(err, &typed):
		return Invalid(path, misfitOf(typed))
	case errors.As(err, &known):
		return known
	case errors.As(err, &corrupt):
		return Invalid(path, "is not base64")
	case errors.Is(err, io.EOF):
		return Invalid(path, "is not valid JSON: it ends too early")
	}
	return Invalid(path, "is not valid JSON: "+err.Error())
}

// misfitOf says why a value is not of its type. A number that is none for the type is out of its range, or has
// a fraction or an exponent where a plain integer must stand.
func misfitOf(e *json.UnmarshalTypeError) string {
	text, isNumber := strings.CutPrefix(e.Value, "number ")
	name := jsonName(e.Type)
	switch {
	case !isNumber:
		return fmt.Sprintf("must be %s, got %s", name, e.Value)
	case name == "a number":
		return "is out of range: " + clip(text, maxNumberShown)
	case name == "an integer" && !strings.ContainsAny(text, ".eE"):
		return "must be an integer within its range, got " + clip(text, maxNumberShown)
	}
	return fmt.Sprintf("must be %s, got %s", name, clip(text, maxNumberShown))
}

// maxNumberShown bounds the digits of a number that an error repeats.
const maxNumberShown = 40

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

// walker reads a JSON text beside the type it is meant for.
type walker struct {
	data   []byte
	dec    *json.Decoder
	values bool // also try every single value, which takes longer
	shapes shapes
}

// errShape ends a walk at a value that is not of its type's shape: the typed decoding says so better.
var errShape = errors.New("not the shape of the type")

func newWalker(data []byte, values bool) *walker {
	return &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data)), values: values}
}

// check reports the first key that v has not, and with values the first value that does not fit.
func (w *walker) check(v any) error {
	err := w.value(reflect.TypeOf(v))
	if err == nil || errors.Is(err, errShape) {
		return nil
	}
	e, ok := AsError(err)
	if !ok {
		return decodeError("body", err)
	}
	if e.Field == "" {
		e.Field = "body"
	}
	return e
}

// at puts a key or an index before the path of err; paths are made on the way out, only when needed.
func at(step string, err error) error {
	e, ok := AsError(err)
	if !ok {
		return err
	}
	if e.Field != "" && e.Field[0] != '[' {
		step += "."
	}
	e.Field = clip(step+e.Field, maxFieldBytes)
	return e
}

var (
	rawMessage  = reflect.TypeFor[json.RawMessage]()
	number      = reflect.TypeFor[json.Number]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func (w *walker) value(t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawMessage || reflect.PointerTo(t).Implements(unmarshaler):
		return w.single(t)
	case t.Kind() == reflect.Struct:
		return w.object(t)
	case t.Kind() == reflect.Slice && (w.values || composite(t.Elem()) || neverNull(t.Elem())):
		if t.Elem().Kind() != reflect.Uint8 {
			return w.array(t)
		}
	}
	return w.single(t)
}

// composite reports that values of t have keys to check somewhere inside.
func composite(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// neverNull reports that an array of t has no place for null.
func neverNull(t reflect.Type) bool {
	if custom(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return false
	default:
		return true
	}
}

// open reads the start of an object or array. ok is false for null.
func (w *walker) open(delim json.Delim, t reflect.Type) (ok bool, err error) {
	tok, err := w.dec.Token()
	switch {
	case err != nil:
		return false, err
	case tok == nil:
		return false, nil
	case tok == delim:
		return true, nil
	case w.values:
		return false, Invalid("", fmt.Sprintf("must be %s, got %s", jsonName(t), tokenName(tok)))
	}
	return false, errShape
}

func tokenName(tok json.Token) string {
	switch tok {
	case json.Delim('{'):
		return "object"
	case json.Delim('['):
		return "array"
	}
	switch tok.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	default:
		return "number"
	}
}

func (w *walker) array(t reflect.Type) error {
	ok, err := w.open('[', t)
	if !ok || err != nil {
		return err
	}
	for i := 0; w.dec.More(); i++ {
		from := w.dec.InputOffset()
		err := w.value(t.Elem())
		if err == nil && neverNull(t.Elem()) && bytes.HasSuffix(w.data[from:w.dec.InputOffset()], []byte("null")) {
			err = Invalid("", fmt.Sprintf("must be %s, got null", jsonName(t.Elem())))
		}
		if err != nil {
			return at(fmt.Sprintf("[%d]", i), err)
		}
	}
	_, err = w.dec.Token()
	return err
}

func (w *walker) object(t reflect.Type) error {
	ok, err := w.open('{', t)
	if !ok || err != nil {
		return err
	}
	fields, seen := w.shapes.of(t).fields, map[string]bool{}
	for w.dec.More() {
		key, err := w.key()
		if err != nil {
			return err
		}
		f, known := fields[key]
		if !known {
			return Invalid(key, "is not a known key")
		}
		if seen[key] {
			return Invalid(key, "is given twice")
		}
		seen[key] = true
		if err := w.value(f.t); err != nil {
			return at(key, err)
		}
	}
	_, err = w.dec.Token()
	return err
}

func (w *walker) key() (string, error) {
	tok, err := w.dec.Token()
	if err != nil {
		return "", err
	}
	key, ok := tok.(string)
	if !ok {
		return "", errors.New("a key is not a string")
	}
	return key, nil
}

// single reads a value whole. Two things encoding/json lets pass are refused: digits in quotes for a
// number, an array of numbers for bytes.
func (w *walker) single(t reflect.Type) error {
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return err
	}
	switch {
	case t == number && raw[0] == '"':
		return Invalid("", "must be a number, got string")
	case t.Kind() == reflect.Slice && t != rawMessage && t.Elem().Kind() == reflect.Uint8 && raw[0] == '[':
		return Invalid("", "must be base64 in a string, got array")
	case !w.values:
		return nil
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return decodeError("", err)
	}
	return nil
}
