package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func everyType() MetadataSchema {
	var s MetadataSchema
	for _, name := range []MetadataType{TypeString, TypeLong, TypeDouble, TypeBoolean, TypeDate} {
		s = append(s, MetadataField{Name: string(name), Type: name}, MetadataField{Name: string(name) + "s", Type: name + "_list"})
	}
	return append(s, MetadataField{Name: "acl", Type: TypeStringList, Internal: true})
}

func TestMetadataIsTakenAsDeclared(t *testing.T) {
	for in, want := range map[string]string{
		``: `{}`, `null`: `{}`, `{}`: `{}`, ` { } `: `{}`, `{"string":null,"longs":null}`: `{}`,
		`{"string":"a \"b\" 年\u0041"}`:                          `{"string":"a \"b\" 年\u0041"}`,
		`{"long":9007199254740993}`:                             `{"long":9007199254740993}`,
		`{"long":-9223372036854775808,"longs":[60,60.0,6e1]}`:   `{"long":-9223372036854775808,"longs":[60,60.0,6e1]}`,
		`{"double":1e308,"doubles":[0,-1,2.5]}`:                 `{"double":1e308,"doubles":[0,-1,2.5]}`,
		`{"booleans":[true,false],"boolean":true}`:              `{"boolean":true,"booleans":[true,false]}`,
		`{"date":"2026-03-01","dates":["2026-03-01 12:30:00"]}`: `{"date":"2026-03-01","dates":["2026-03-01 12:30:00"]}`,
		`{"strings":[],"acl":["a"]}`:                            `{"acl":["a"],"strings":[]}`,
	} {
		got, err := everyType().ValidateMetadata(raw(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestMetadataAgainstTheSchemaNamesTheField(t *testing.T) {
	for _, c := range []struct{ in, field string }{
		{`[]`, "metadata"},
		{`"a"`, "metadata"},
		{`{`, "metadata"},
		{`{} {}`, "metadata"},
		{`{"string":` + strings.Repeat("[", 70), "metadata"},
		{"{\"string\":\"\xff\"}", "metadata"},
		{`{"string":"\ud83d"}`, "metadata"},
		{`{"other":1}`, "metadata.other"},
		{`{"other":null}`, "metadata.other"},
		{`{"String":"a"}`, "metadata.String"},
		{`{"string":"a","string":"b"}`, "metadata.string"},
		{`{"string":"a","str\u0069ng":null}`, "metadata.string"},
		{`{"zz":1,"yy":2}`, "metadata.zz"},
		{`{"string":1}`, "metadata.string"},
		{`{"string":["a"]}`, "metadata.string"},
		{`{"string":"a\u0000"}`, "metadata.string"},
		{`{"strings":"a"}`, "metadata.strings"},
		{`{"strings":["a",null]}`, "metadata.strings[1]"},
		{`{"strings":["a",["b"]]}`, "metadata.strings[1]"},
		{`{"strings":{"a":1}}`, "metadata.strings"},
		{`{"long":1.5}`, "metadata.long"},
		{`{"long":"1"}`, "metadata.long"},
		{`{"long":9223372036854775808}`, "metadata.long"},
		{`{"long":1e19}`, "metadata.long"},
		{`{"long":1e999999999}`, "metadata.long"},
		{`{"long":1e-999999}`, "metadata.long"},
		{`{"long":5e-1}`, "metadata.long"},
		{`{"longs":[1,true]}`, "metadata.longs[1]"},
		{`{"double":1e309}`, "metadata.double"},
		{`{"double":"NaN"}`, "metadata.double"},
		{`{"boolean":"true"}`, "metadata.boolean"},
		{`{"boolean":0}`, "metadata.boolean"},
		{`{"date":"2026-02-30"}`, "metadata.date"},
		{`{"date":1}`, "metadata.date"},
		{`{"dates":["2026-02-01","yesterday"]}`, "metadata.dates[1]"},
	} {
		for range 5 { // the same verdict every time
			_, err := everyType().ValidateMetadata(raw(c.in))
			wantField(t, c.in, err, c.field)
		}
	}
}

func TestLongsInAnyNotation(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e5": 0, "0e-5": 0, "60": 60, "60.0": 60, "6e1": 60, "0.6E+2": 60, "600e-1": 60,
		"9007199254740993": 9007199254740993, "9007199254740993.0": 9007199254740993, "9.223372036854775807e18": 9223372036854775807,
	} {
		got, err := ParseValue("n", TypeLong, raw(in))
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %d", in, got, err, want)
		}
	}
}

// A number of a few bytes must not cost more than its size, whatever its exponent.
func TestExponentsCostNothing(t *testing.T) {
	var items []string
	for i := range 4000 {
		items = append(items, fmt.Sprintf("%de-399", i%9+1))
	}
	s := MetadataSchema{{Name: "d", Type: TypeDoubleList}, {Name: "l", Type: TypeLong}}
	began := time.Now()
	if _, err := s.ValidateMetadata(raw(`{"d":[` + strings.Join(items, ",") + `]}`)); err != nil {
		t.Error(err)
	}
	for _, item := range items {
		_, err := s.ValidateMetadata(raw(`{"l":` + item + `}`))
		wantField(t, item, err, "metadata.l")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestParseDate(t *testing.T) {
	at := func(ms int) time.Time { return time.Date(2026, 3, 1, 12, 30, 5, ms*1_000_000, time.UTC) }
	for in, want := range map[string]time.Time{
		"2026-03-01": at(0).Truncate(24 * time.Hour), "2026-03-01 12:30:05": at(0), "2026-03-01 12:30:05.250": at(250), "20260301 123005": at(0),
		"2026-03-01T12:30:05": at(0), "2026-03-01T12:30:05Z": at(0), "2026-03-01T14:30:05+02:00": at(0), "2026-03-01T12:30:05.250999999Z": at(250),
		"2026-03-01T12:30:05.2Z": at(200), "2024-02-29": time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), "0001-01-01": {},
	} {
		if got, err := ParseDate(in); err != nil || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "2026", "2026-3-1", "2026-02-29", "2026-13-01", "2026-03-01 ", " 2026-03-01", "2026-03-01 12:30", "2026-03-01 12:30:05.2", "2026-03-01 12:30:05,250",
		"2026-03-01 24:00:00", "2026-03-01T12:30:05.250", "2026-03-01T1:30:05Z", "2026-03-01T12:30:05,25Z", "2026-03-01T12:30:05.1234567890Z", "2026-03-01t12:30:05z",
		"2026-03-01T12:30:05+0200", "2026-03-01T12:30:60Z", "20260301", "+2026-03-01", "-001-01-01", "2026-03-01\x00", strings.Repeat("1", 1<<16),
	} {
		got, err := ParseDate(in)
		if err == nil {
			t.Errorf("%.60q: got %v", in, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.20q: an error of %d bytes", in, len(err.Error()))
		}
	}
}

// FuzzMetadata: never a panic, typed errors, and what is accepted is accepted again unchanged.
func FuzzMetadata(f *testing.F) {
	for _, in := range []string{`{}`, `{"string":"a","longs":[1,6e1],"double":2.5,"booleans":[true],"date":"2026-03-01"}`, `{"long":1e-400}`, `{"acl":null}`, `{"strings":["\u0000"]}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := everyType().ValidateMetadata(in)
		if err != nil {
			if _, ok := AsError(err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q", in, once)
		}
		if again, err := everyType().ValidateMetadata(once); err != nil || string(again) != string(once) {
			t.Fatalf("%q became %q, then %q, %v", in, once, again, err)
		}
	})
}

// What a value is, and which members an object has, is what encoding/json says.
func TestMetadataIsReadAsByEncodingJSON(t *testing.T) {
	values := []string{
		`null`, ` null `, `nul`, `nullx`, `true`, `false`, `truefalse`, `""`, `"a"`, `"\u00e9\n"`, `"\ud800"`, "\"\xff\"", `"a" "b"`, `"a`, `12`, ` 12 `, `12a`, `12 13`,
		`-0.5e+3`, `01`, `-`, `[]`, `[1]`, `{}`, `{"a":1}`, ``, ` `, `x`, "\x00",
	}
	for _, value := range values {
		var want any
		dec := json.NewDecoder(strings.NewReader(value))
		dec.UseNumber()
		err := dec.Decode(&want)
		if got, ok := scalar(json.RawMessage(value)); ok && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%q: got %v, want %v (%v)", value, got, want, err)
		}
		for _, body := range []string{value, `{"a":` + value + `}`, ` { "a" : ` + value + ` , "b":[` + value + `],"a":1}`, `{` + value + `}`} {
			if scanJSON("metadata", []byte(body)) != nil {
				continue
			}
			var got []string
			err := eachMember(json.RawMessage(body), func(name string, value json.RawMessage) error {
				got = append(got, name, string(value))
				return nil
			})
			if want, isObject := membersOf(body); (err == nil) != isObject || !slices.Equal(got, want) {
				t.Errorf("%q: got %q (%v), want %q", body, got, err, want)
			}
		}
	}
}

// membersOf returns names and values of an object in turn.
func membersOf(body string) (all []string, isObject bool) {
	if !json.Valid([]byte(body)) || !strings.HasPrefix(strings.TrimSpace(body), "{") {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(body))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		var value json.RawMessage
		name, err = dec.Token()
		err = errors.Join(err, dec.Decode(&value))
		all = append(all, fmt.Sprint(name), string(value))
	}
	return all, err == nil
}
