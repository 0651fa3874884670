package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
)

type kind int

const (
	stringKind kind = iota + 1
	numberKind
	booleanKind
)

func (k kind) String() string {
	return [...]string{"nothing", "a string", "a number", "a boolean"}[k]
}

// Literal is a value before it has the type of a field: a string, a number of any size, or a boolean.
type Literal struct {
	kind kind
	text string // of the string; of the number, canonical; true or false
	pos  int    // in an expression
}

func stringLiteral(s string) Literal { return Literal{kind: stringKind, text: s} }
func numberLiteral(s string) Literal { return Literal{kind: numberKind, text: canonicalNumber(s)} }
func booleanLiteral(b bool) Literal  { return Literal{kind: booleanKind, text: strconv.FormatBool(b)} }

// LiteralOf makes a literal of a string, boolean, integer, finite float, json.Number or time.Time, or of
// a value whose type is defined as one of the basic ones.
func LiteralOf(v any) (Literal, error) {
	switch v := v.(type) {
	case nil:
		return Literal{}, errors.New("nil is no value")
	case Literal:
		if v.kind == 0 {
			return Literal{}, errors.New("an empty literal is no value")
		}
		return v, nil
	case time.Time:
		return stringLiteral(v.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)), nil
	case json.Number:
		if !json.Valid([]byte(v)) || strings.TrimLeft(string(v), "-0123456789.eE+") != "" {
			return Literal{}, fmt.Errorf("%.64q is no number", string(v))
		}
		return numberLiteral(string(v)), nil
	}
	return literalByKind(reflect.ValueOf(v))
}

func literalByKind(v reflect.Value) (Literal, error) {
	switch {
	case v.Kind() == reflect.String:
		if !utf8.ValidString(v.String()) {
			return Literal{}, errors.New("the text is not valid UTF-8")
		}
		return stringLiteral(v.String()), nil
	case v.Kind() == reflect.Bool:
		return booleanLiteral(v.Bool()), nil
	case v.CanInt():
		return numberLiteral(strconv.FormatInt(v.Int(), 10)), nil
	case v.CanUint():
		return numberLiteral(strconv.FormatUint(v.Uint(), 10)), nil
	case v.CanFloat():
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return Literal{}, fmt.Errorf("%v is no finite number", v.Float())
		}
		return numberLiteral(strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())), nil
	}
	return Literal{}, fmt.Errorf("a %s is not a string, number, boolean or time", v.Type())
}

// MarshalJSON writes the value as JSON.
func (l Literal) MarshalJSON() ([]byte, error) {
	switch l.kind {
	case stringKind:
		return json.Marshal(l.text)
	case numberKind, booleanKind:
		return []byte(l.text), nil
	}
	return nil, errors.New("an empty literal has no JSON")
}

// as gives the value the type of a field's element: string, int64, float64, bool or time.Time.
func (l Literal) as(t messages.MetadataType, at place) (any, error) {
	switch {
	case l.kind == stringKind && t == messages.TypeString:
		if err := messages.ValidText("", l.text); err != nil {
			return nil, at.fail(reasonOf(err))
		}
		return l.text, nil
	case l.kind == stringKind && t == messages.TypeDate:
		date, err := messages.ParseDate(l.text)
		if err != nil {
			return nil, at.fail(err.Error())
		}
		return date, nil
	case l.kind == booleanKind && t == messages.TypeBoolean:
		return l.text == "true", nil
	case l.kind == numberKind && (t == messages.TypeLong || t == messages.TypeDouble):
		if n, err := strconv.ParseInt(l.text, 10, 64); err == nil && t == messages.TypeLong {
			return n, nil
		}
		v, err := messages.ParseValue("", t, json.RawMessage(l.text))
		if err != nil {
			return nil, at.fail(reasonOf(err))
		}
		return v, nil
	}
	return nil, at.fail(fmt.Sprintf("must be of type %s, got %s", t, l.kind))
}

func reasonOf(err error) string {
	if e, ok := messages.AsError(err); ok {
		return e.Message
	}
	return err.Error()
}
