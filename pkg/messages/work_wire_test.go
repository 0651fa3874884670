package messages

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func wireSamples(t *testing.T) (embed, index []byte) {
	t.Helper()
	var err error
	embed, err = Encode(EmbedWork{Ref: sampleRef(), Space: sampleSpace(), Parts: 1, Chunks: chunksOf("one\ntwo", "", "三", "\x00\"")})
	if err != nil {
		t.Fatal(err)
	}
	index, err = Encode(&IndexWork{Ref: sampleRef(), Parts: 1, Vectors: []IndexVector{{Ordinal: 0, Vector: []byte("\n\x00\xff\n")}, {Ordinal: 3, Vector: []byte("abcdefgh")}}})
	if err != nil {
		t.Fatal(err)
	}
	return embed, index
}

func TestTextsAndVectorsComeBackWhateverTheyHold(t *testing.T) {
	embed, index := wireSamples(t)
	var e EmbedWork
	if err := e.UnmarshalBinary(embed); err != nil || !reflect.DeepEqual(e.Chunks, chunksOf("one\ntwo", "", "三", "\x00\"")) {
		t.Errorf("got %+v (%v)", e.Chunks, err)
	}
	var i IndexWork
	if err := i.UnmarshalBinary(index); err != nil || len(i.Vectors) != 2 || !bytes.Equal(i.Vectors[0].Vector, []byte("\n\x00\xff\n")) || i.Vectors[1].Ordinal != 3 {
		t.Errorf("got %+v (%v)", i.Vectors, err)
	}
}

func TestWorkThatIsCutOrWrongIsRefused(t *testing.T) {
	embed, index := wireSamples(t)
	wrong := map[string]func([]byte) []byte{
		"cut":       func(b []byte) []byte { return b[:len(b)-1] },
		"longer":    func(b []byte) []byte { return append(bytes.Clone(b), 'x') },
		"no line":   func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), nil) },
		"no JSON":   func(b []byte) []byte { return append([]byte("x"), b...) },
		"empty":     func([]byte) []byte { return nil },
		"negative":  func(b []byte) []byte { return bytes.Replace(b, []byte(`"bytes":`), []byte(`"bytes":-`), 1) },
		"very long": func(b []byte) []byte { return bytes.Replace(b, []byte(`"bytes":`), []byte(`"bytes":9`), 1) },
		"beyond int64": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"bytes":`), []byte(`"bytes":`+strings.Repeat("9", 30)), 1)
		},
	}
	for what, change := range wrong {
		if err := new(EmbedWork).UnmarshalBinary(change(embed)); err == nil {
			t.Errorf("embed work, %s: want an error", what)
		}
		if err := new(IndexWork).UnmarshalBinary(change(index)); err == nil {
			t.Errorf("index work, %s: want an error", what)
		}
	}
}

func TestEveryWorkMessageSaysItsVersion(t *testing.T) {
	for _, v := range []any{
		ParseWork{Ref: sampleRef()}, EmbedWork{Ref: sampleRef(), Space: sampleSpace(), Chunks: chunksOf("a\n")}, IndexWork{Ref: sampleRef(), Parts: 1},
	} {
		body, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if ref, ok := RefOf(body); !ok || ref != sampleRef() {
			t.Errorf("%T: got %+v, %v", v, ref, ok)
		}
	}
	for _, body := range []string{"", "{}", "no JSON", `{"tenant":"acme"}`} {
		if ref, ok := RefOf([]byte(body)); ok {
			t.Errorf("%q: got %+v, want none", body, ref)
		}
	}
}

// FuzzWorkWire reads any bytes; what it accepts it writes back to the same meaning.
func FuzzWorkWire(f *testing.F) {
	t := &testing.T{}
	embed, index := wireSamples(t)
	f.Add(embed)
	f.Add(index)
	f.Fuzz(func(t *testing.T, data []byte) {
		var w EmbedWork
		if w.UnmarshalBinary(data) == nil {
			again, err := Encode(w)
			var v EmbedWork
			if err != nil || v.UnmarshalBinary(again) != nil || len(v.Chunks) != len(w.Chunks) {
				t.Errorf("embed work does not come back: %v", err)
			}
		}
		var x IndexWork
		if x.UnmarshalBinary(data) == nil {
			again, err := Encode(x)
			var v IndexWork
			if err != nil || v.UnmarshalBinary(again) != nil || len(v.Vectors) != len(x.Vectors) {
				t.Errorf("index work does not come back: %v", err)
			}
		}
	})
}
