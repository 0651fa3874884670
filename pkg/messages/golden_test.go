package messages

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write the goldens anew; a changed golden is a changed contract")

func goldenPath(name string) string { return filepath.Join("testdata", "golden", name+".json") }

func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkGolden compares got, indented, with a golden.
func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile(goldenPath(name), pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := readGolden(t, name); !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the wire form of %s changed.\ngot:\n%s\nwant:\n%s", name, pretty.Bytes(), want)
	}
}

// folded is the golden of a message that is not JSON throughout.
type folded struct {
	Head    json.RawMessage `json:"head"`
	Payload []byte          `json:"payload"`
}

// unfold returns the golden of a body.
func unfold(t *testing.T, value any, body []byte) []byte {
	t.Helper()
	if _, ok := value.(encoding.BinaryMarshaler); !ok {
		return body
	}
	head, payload, _ := bytes.Cut(body, []byte("\n"))
	out, err := Encode(folded{head, payload})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fold returns the body of a golden.
func fold(t *testing.T, golden []byte) []byte {
	t.Helper()
	var f folded
	if err := json.Unmarshal(golden, &f); err != nil {
		t.Fatal(err)
	}
	return append(append(f.Head, '\n'), f.Payload...)
}

func TestWireFormsAreTheGoldens(t *testing.T) {
	for _, m := range all {
		t.Run(m.golden, func(t *testing.T) {
			body, err := Encode(m.value)
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, m.golden, unfold(t, m.value, body))
		})
	}
}

func TestGoldensReadBackAsTheyWere(t *testing.T) {
	for _, m := range all {
		t.Run(m.golden, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(m.value).Elem()).Interface()
			decode := json.Unmarshal
			if m.strict {
				decode = DecodeStrict
			}
			if b, ok := got.(encoding.BinaryUnmarshaler); ok {
				decode = func(data []byte, _ any) error { return b.UnmarshalBinary(fold(t, data)) }
			}
			if err := decode(compact(t, readGolden(t, m.golden)), got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, m.value) {
				t.Errorf("got %+v, want %+v", got, m.value)
			}
		})
	}
}

func TestReadersOfRepliesAndWorkIgnoreUnknownKeys(t *testing.T) {
	for _, m := range all {
		if m.strict {
			continue
		}
		body := bytes.Replace(compact(t, readGolden(t, m.golden)), []byte("{"), []byte(`{"addedLater":{"a":[1]},`), 1)
		got := reflect.New(reflect.TypeOf(m.value).Elem()).Interface()
		decode := func() error { return json.Unmarshal(body, got) }
		if b, ok := got.(encoding.BinaryUnmarshaler); ok {
			body = bytes.Replace(compact(t, readGolden(t, m.golden)), []byte(`"head":{`), []byte(`"head":{"addedLater":{"a":[1]},`), 1)
			decode = func() error { return b.UnmarshalBinary(fold(t, body)) }
		}
		if err := decode(); err != nil {
			t.Errorf("%s: %v", m.golden, err)
		}
		if !reflect.DeepEqual(got, m.value) {
			t.Errorf("%s: got %+v, want %+v", m.golden, got, m.value)
		}
	}
}

func TestGoldensAreValidMessages(t *testing.T) {
	checked := 0
	for _, m := range all {
		v, ok := m.value.(interface{ Validate() error })
		if !ok {
			continue
		}
		checked++
		if err := v.Validate(); err != nil {
			t.Errorf("%s: %v", m.golden, err)
		}
	}
	if checked < 8 {
		t.Errorf("only %d messages of the table have a Validate", checked)
	}
}

func TestNoGoldenIsLeftOver(t *testing.T) {
	files, err := filepath.Glob(goldenPath("*"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{goldenPath(goldenRawSubmit): true, goldenPath(goldenRawDelete): true}
	for _, m := range all {
		if known[goldenPath(m.golden)] {
			t.Errorf("two messages share the golden %s", m.golden)
		}
		known[goldenPath(m.golden)] = true
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s belongs to no message", f)
		}
	}
}

// TestEveryMessageIsInTheTable reads the package's source: each exported struct with JSON keys is a
// message of the table or a part of one.
func TestEveryMessageIsInTheTable(t *testing.T) {
	reached := map[string]bool{}
	for _, m := range all {
		reach(reflect.TypeOf(m.value), reached)
	}
	declared := jsonStructs(t)
	if len(declared) < 30 {
		t.Fatalf("found only %d structs with JSON keys", len(declared))
	}
	for _, name := range declared {
		if !reached[name] {
			t.Errorf("%s has no golden: add it to the table", name)
		}
	}
}

func reach(t reflect.Type, seen map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		reach(t.Elem(), seen)
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[Event]().PkgPath() || seen[t.Name()] {
			return
		}
		seen[t.Name()] = true
		for i := range t.NumField() {
			reach(t.Field(i).Type, seen)
		}
	}
}

func compact(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
