package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// everything has a field of every kind that decoding treats in its own way.
type everything struct {
	Text    string             `json:"text"`
	TextP   *string            `json:"textp"`
	TextPP  **string           `json:"textpp"`
	Bool    bool               `json:"bool"`
	Int     int                `json:"int"`
	Int8    int8               `json:"int8"`
	Int64   *int64             `json:"int64"`
	Uint    uint16             `json:"uint"`
	Float   float64            `json:"float"`
	Float32 float32            `json:"float32"`
	Number  json.Number        `json:"number"`
	NumberP *json.Number       `json:"numberp"`
	Raw     json.RawMessage    `json:"raw"`
	RawP    *json.RawMessage   `json:"rawp"`
	Raws    []json.RawMessage  `json:"raws"`
	Bytes   []byte             `json:"bytes"`
	BytesP  *[]byte            `json:"bytesp"`
	Blobs   [][]byte           `json:"blobs"`
	Texts   []string           `json:"texts"`
	Numbers []json.Number      `json:"numbers"`
	Pair    [2]int             `json:"pair"`
	Map     map[string]string  `json:"map"`
	Maps    map[string][]inner `json:"maps"`
	Any     any                `json:"any"`
	Anys    []any              `json:"anys"`
	Time    time.Time          `json:"time"`
	TimeP   *time.Time         `json:"timep"`
	Own     upper              `json:"own"`
	Status  DocumentStatus     `json:"status"`
	Inner   inner              `json:"inner"`
	InnerP  *inner             `json:"innerp"`
	Inners  []inner            `json:"inners"`
	InnersP []*inner           `json:"innersp"`
	Hidden  string             `json:"-"`
	Bare    int
	inner
	Page
}

type inner struct {
	A string  `json:"a,omitempty"`
	B []inner `json:"b,omitempty"`
	C *inner  `json:"c"`
}

// upper decodes itself out of text.
type upper string

func (u *upper) UnmarshalText(text []byte) error {
	*u = upper(bytes.ToUpper(text))
	return nil
}

// quotedInt is read in a way of its own by encoding/json.
type quotedInt struct {
	N int `json:"n,string"`
}

// shadowed has a key twice, of which encoding/json sees the outer one.
type shadowed struct {
	A int `json:"a"`
	inner
}

func everyTarget() []reflect.Type {
	targets := []reflect.Type{
		reflect.TypeFor[everything](), reflect.TypeFor[quotedInt](), reflect.TypeFor[shadowed](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[any](), reflect.TypeFor[map[string]any](), reflect.TypeFor[[]inner](), reflect.TypeFor[*inner](), reflect.TypeFor[string](),
	}
	for _, m := range all {
		if m.strict {
			targets = append(targets, reflect.TypeOf(m.value).Elem())
		}
	}
	return targets
}

// wantSame decodes body in one pass and in several, and wants the same value or the same error.
func wantSame(t *testing.T, body []byte, target reflect.Type) {
	t.Helper()
	got, want := reflect.New(target), reflect.New(target)
	gotErr, wantErr := DecodeStrict(body, got.Interface()), decodeSlowly(body, want.Interface())
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%s out of %q:\ngot  %+v (%v)\nwant %+v (%v)", target, body, got.Elem(), gotErr, want.Elem(), wantErr)
	}
}

// wantSameFields wants the fields of a line to be those that plain decoding finds.
func wantSameFields(t *testing.T, line []byte) {
	t.Helper()
	if !utf8.Valid(line) {
		return
	}
	var want map[string]json.RawMessage
	if json.Unmarshal(line, &want) != nil {
		want = nil
	}
	got, strict := lineFields(line)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("fields of %q:\ngot  %s\nwant %s", line, got, want)
	}
	if err := scanJSON("body", line); strict && err != nil {
		t.Fatalf("%q was read strictly: %v", line, err)
	}
}

func TestOnePassDecodesAsSeveralDo(t *testing.T) {
	texts := []string{
		`""`, `"a"`, `"é世😀"`, `"\n\t\r\b\f\/\\\""`, `"\u0041\u00e9\u4e16"`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`, `"\u0000"`, `"\ufffd"`, "\"\x7f\"", "\"\u2028\"",
		`"\ud800"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`, `"\u12"`, `"\u12g4"`, `"\u+123"`, `"\x"`, `"\`, `"\"`, `"a`, "\"\n\"", "\"\x00\"", "\"\x1f\"", "\"\xff\"",
		`"12345678"`, `"1234567\"89"`, "\"1234567\x01\"", `"12345678\\"`, `"eHg="`, `"eHg"`, `"e\u0048g="`, "\"eH\\ng=\"", `"2026-03-01T12:30:00Z"`, `"60"`,
	}
	numbers := []string{
		`0`, `-0`, `1`, `-1`, `127`, `128`, `65536`, `1.5`, `1e3`, `1E+3`, `1e-3`, `-1.25e2`, `9223372036854775807`, `9223372036854775808`, `1e999`, `9007199254740993`,
		`01`, `-`, `+1`, `.5`, `1.`, `1.e1`, `1e`, `1e+`, `0x1`, `1_0`, `NaN`, `Infinity`, `--1`, `00`, `-01`,
	}
	others := []string{
		`null`, `true`, `false`, `nul`, `nulll`, `True`, `{}`, `[]`, `[1]`, `[1,2]`, `[1,2,3]`, `["a"]`, `["a",null]`, `["60"]`, `[[1]]`, `[null]`, `[,]`, `[1,]`, `[1 2]`, `{"a"}`, `{"a":}`,
		`{"a":"x"}`, `{"a":"x",}`, `{"a":"x","a":"y"}`, `{"A":"x"}`, `{"b":[{"a":"x"},{"b":[]}]}`, `{"b":[{"c":{"c":null}}]}`, `{"b":[{"z":1}]}`, `{"c":{"a":1}}`, `[{"a":"x"},null]`,
		`{"x":"y"}`, `{"x":[{"a":"b"}]}`, `{"x":[1],"x":[2]}`, `{1:2}`, `{"\u0061":"x"}`, "{\"a\xff\":1}", ` { "a" : "x" } `, "\t[ 1 ,\r\n2 ] ", "{\u00a0}", "[\v1]", `]`, `}`, `"a"b`,
	}
	values := append(append(texts, numbers...), others...)
	for _, depth := range []int{MaxJSONDepth - 2, MaxJSONDepth - 1, MaxJSONDepth, MaxJSONDepth + 1} {
		values = append(values, strings.Repeat("[", depth)+strings.Repeat("]", depth), strings.Repeat(`{"c":`, depth)+"{}"+strings.Repeat("}", depth))
	}
	for _, target := range everyTarget() {
		keys := []string{"", "n", "unknown"}
		if target.Kind() == reflect.Struct {
			for key := range newShape(target).fields {
				keys = append(keys, key)
			}
		}
		for _, value := range values {
			wantSame(t, []byte(value), target)
			wantSameFields(t, fmt.Appendf(nil, ` {"a":1,"a" : %s , "n\u0061me":{}}`, value))
			for _, key := range keys {
				wantSame(t, fmt.Appendf(nil, `{%q:%s}`, key, value), target)
				wantSame(t, fmt.Appendf(nil, `{"a":"","maxResults":1,%q : %s , "nextToken":"x"} `, key, value), target)
			}
		}
	}
}

// Golden bodies with some bytes changed, removed, doubled or exchanged for others of the same text.
func TestOnePassDecodesBrokenBodiesAsSeveralDo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const spice = "\"\\{}[],:0123456789.-+eEntfu \n\x00\x1f\x7f\xc3\xed\xff"
	full := fullOf(reflect.TypeFor[everything](), 3)
	bodies := map[reflect.Type][]byte{reflect.TypeFor[everything](): full}
	for _, m := range all {
		if m.strict {
			bodies[reflect.TypeOf(m.value).Elem()] = compact(t, readGolden(t, m.golden))
		}
	}
	for target, body := range bodies {
		for range 1000 {
			b := bytes.Clone(body)
			for range 1 + rng.IntN(3) {
				at := rng.IntN(len(b))
				switch end := at + rng.IntN(min(12, len(b)-at)); rng.IntN(5) {
				case 0:
					b[at] = spice[rng.IntN(len(spice))]
				case 1:
					b = append(b[:at], b[end:]...)
				case 2:
					b = append(b[:end:end], b[at:]...)
				case 3:
					copy(b[at:], b[rng.IntN(len(b)):][:1])
				case 4:
					b = append(b[:at:at], append([]byte{spice[rng.IntN(len(spice))]}, b[at:]...)...)
				}
				if len(b) == 0 {
					break
				}
			}
			wantSame(t, b, target)
			wantSameFields(t, b)
		}
	}
}

// fullOf is a body with every key of a struct.
func fullOf(t reflect.Type, depth int) []byte {
	var out bytes.Buffer
	for key, f := range newShape(t).fields {
		fmt.Fprintf(&out, ",%q:%s", key, valueOf(f.t, depth))
	}
	return append(append([]byte("{"), bytes.TrimPrefix(out.Bytes(), []byte(","))...), '}')
}

func valueOf(t reflect.Type, depth int) string {
	switch {
	case depth == 0:
		return "null"
	case t == rawMessage || t.Kind() == reflect.Interface:
		return `{"k":[1,"v",null,{"é":1e3}]}`
	case t == reflect.TypeFor[time.Time]():
		return `"2026-03-01T12:30:00Z"`
	case t == number:
		return "6e1"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return valueOf(t.Elem(), depth)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return `"eHg="`
		}
		if depth == 1 {
			return "[]"
		}
		return "[" + valueOf(t.Elem(), depth-1) + "," + valueOf(t.Elem(), depth-1) + "]"
	case reflect.Array:
		return "[1,2]"
	case reflect.Map:
		return `{"k":` + valueOf(t.Elem(), depth-1) + "}"
	case reflect.Struct:
		return string(fullOf(t, depth-1))
	case reflect.String:
		return `"té\nx\u0041"`
	case reflect.Bool:
		return "true"
	}
	return "7"
}

// What is right must not take the way of what is wrong: that costs ten times as much.
func TestRequestsAreReadInOnePass(t *testing.T) {
	for _, m := range all {
		if !m.strict {
			continue
		}
		kind := reflect.TypeOf(m.value).Elem()
		for _, body := range [][]byte{readGolden(t, m.golden), fullOf(kind, 6)} {
			if !readStrict(body, reflect.New(kind).Interface()) {
				t.Errorf("%s: %s is not read in one pass", kind, body)
			}
		}
	}
	if kind := reflect.TypeFor[everything](); !readStrict(fullOf(kind, 6), reflect.New(kind).Interface()) {
		t.Error("everything is not read in one pass")
	}
}

func TestDecodeStrictAddsToWhatIsThere(t *testing.T) {
	v := Page{MaxResults: 3, NextToken: "x"}
	if err := DecodeStrict([]byte(`{"nextToken":"y"}`), &v); err != nil || v != (Page{MaxResults: 3, NextToken: "y"}) {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestWhatWasDecodedSharesNoMemoryWithTheBody(t *testing.T) {
	body := []byte(`{"docId":"a","text":"plain","metadata":{"k":"v"}}`)
	s := new(Submit)
	if err := DecodeStrict(body, s); err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 'x'
	}
	if s.DocID != "a" || *s.Text != "plain" || string(s.Metadata) != `{"k":"v"}` {
		t.Errorf("got %+v", s)
	}
}

// The end of a plain run is found at every place, whatever stands behind it.
func TestPlainRuns(t *testing.T) {
	for c := range 256 {
		special := c < ' ' || c == '"' || c == '\\'
		for at := range 20 {
			b := bytes.Repeat([]byte{'a'}, 20)
			b[at] = byte(c)
			want := 20
			if special {
				want = at
			}
			if got := plain(b); got != want {
				t.Fatalf("%q: got %d, want %d", b, got, want)
			}
			b = append(b, `"`...)
			if got := plain(b); got != want {
				t.Fatalf("%q: got %d, want %d", b, got, want)
			}
		}
	}
}

func FuzzOnePass(f *testing.F) {
	for _, m := range all {
		if m.strict {
			body, err := Encode(m.value)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
		}
	}
	f.Add(fullOf(reflect.TypeFor[everything](), 4))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, target := range everyTarget() {
			wantSame(t, body, target)
		}
		wantSameFields(t, body)
		if raw := new(json.RawMessage); utf8.Valid(body) && readStrict(body, raw) && !json.Valid(*raw) {
			t.Fatalf("%q was taken for JSON", body)
		}
	})
}
