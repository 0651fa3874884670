package messages

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// readStrict decodes data, valid UTF-8, into what v points at, in one pass. It takes no text that encoding/json and
// walker would not take together, and makes the same of it. Where it reports false, v is as it was: data may be
// wrong, or v is not the plain case of a zero value.
func readStrict(data []byte, v any) bool {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || !p.Elem().IsZero() {
		return false
	}
	r := &reader{data: data}
	if r.value(p.Elem()) && r.end() {
		return true
	}
	p.Elem().SetZero()
	return false
}

// value reads a value into v, which is zero.
func (r *reader) value(v reflect.Value) bool {
	t, c := v.Type(), r.peek()
	switch {
	case t == rawMessage:
		raw, ok := r.skip()
		v.SetBytes(bytes.Clone(raw))
		return ok
	case custom(t):
		return r.other(v)
	case c == 'n':
		return r.word("null")
	case t == number:
		raw := r.number()
		v.SetString(string(raw))
		return raw != nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return r.value(v.Elem())
	case reflect.Struct:
		return r.object(v)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return r.base64(v)
		}
		return r.array(v)
	case reflect.String:
		s, ok := r.text()
		v.SetString(s)
		return ok
	case reflect.Bool:
		v.SetBool(c == 't')
		return r.word("true") || r.word("false")
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(string(r.number()), 10, t.Bits())
		v.SetInt(n)
		return err == nil
	default:
		return r.other(v)
	}
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// custom reports that a type decodes itself.
func custom(t reflect.Type) bool {
	if t.PkgPath() == "" { // not declared, so without methods
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(textUnmarshaler)
}

// other leaves a value to encoding/json.
func (r *reader) other(v reflect.Value) bool {
	raw, ok := r.skip()
	if !ok {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v.Addr().Interface()) == nil
}

func (r *reader) object(v reflect.Value) bool {
	s := r.shapes.of(v.Type())
	var seen uint64
	return s.plain && r.members(func(key []byte) bool {
		f, known := s.fields[string(key)]
		if !known || seen&f.bit != 0 {
			return false
		}
		seen |= f.bit
		return r.value(v.FieldByIndex(f.index))
	})
}

func (r *reader) array(v reflect.Value) bool {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	full := neverNull(v.Type().Elem())
	return r.list('[', ']', func() bool {
		if full && r.peek() == 'n' {
			return false
		}
		n := v.Len()
		v.Grow(1)
		v.SetLen(n + 1)
		return r.value(v.Index(n))
	})
}

func (r *reader) base64(v reflect.Value) bool {
	raw, escaped, ok := r.quoted()
	if escaped {
		raw = []byte(unquote(raw))
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(out, raw)
	v.SetBytes(out[:n])
	return ok && err == nil
}

// shape tells what keys a struct has. One that is not plain has fields that encoding/json may see in another way.
type shape struct {
	fields map[string]field
	plain  bool
}

type field struct {
	t     reflect.Type
	index []int
	bit   uint64 // its own among the fields of the shape
}

// wireShapes are those of all requests, of the heads of work and of what they are made of.
var wireShapes = sync.OnceValue(func() shapes {
	all := shapes{}
	for _, o := range Operations() {
		all.add(reflect.TypeOf(o.Request))
	}
	for _, head := range []any{EmbedRequest{}, embedHead{}, indexHead{}} {
		all.add(reflect.TypeOf(head))
	}
	return all
})

func (m shapes) add(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if _, known := m[t]; known || t.Kind() != reflect.Struct {
		return
	}
	s := newShape(t)
	m[t] = s
	for _, f := range s.fields {
		m.add(f.t)
	}
}

// shapes remembers those of other types for as long as a text is read. The zero value is ready.
type shapes map[reflect.Type]shape

func (m *shapes) of(t reflect.Type) shape {
	s, ok := wireShapes()[t]
	if ok {
		return s
	}
	if s, ok = (*m)[t]; ok {
		return s
	}
	if *m == nil {
		*m = shapes{}
	}
	s = newShape(t)
	(*m)[t] = s
	return s
}

func newShape(t reflect.Type) shape {
	s := shape{fields: map[string]field{}, plain: true}
	s.add(t, nil)
	s.plain = s.plain && len(s.fields) <= 64
	return s
}

// add adds the fields of a struct that stands at an index.
func (s *shape) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(at[:len(at):len(at)], i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.add(f.Type, index)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		_, twice := s.fields[name]
		s.plain = s.plain && !twice && !strings.Contains(options, "string")
		s.fields[name] = field{t: f.Type, index: index, bit: 1 << len(s.fields)}
	}
}
