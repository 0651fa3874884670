package embedding_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"github.com/weir-project/weir/pkg/embedding"
)

// asLibrary reads an answer as the library does.
func asLibrary(body []byte) (openai.EmbeddingResponse, error) {
	var res openai.EmbeddingResponseBase64
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&res); err != nil {
		return openai.EmbeddingResponse{}, err
	}
	return res.ToEmbeddingResponse()
}

// sameAsLibrary fails unless the answer without its vectors and the vectors are together what the library reads. It
// reports whether the vectors were taken out.
func sameAsLibrary(t *testing.T, body []byte, most int) bool {
	vectors, rest, ok := embedding.CutVectors(bytes.Clone(body), most)
	if !ok {
		return false
	}
	got, restErr := asLibrary(rest)
	want, err := asLibrary(body)
	if (restErr == nil) != (err == nil) {
		t.Fatalf("%.300q: the rest gives %v, the library %v", body, restErr, err)
	}
	if err != nil {
		return true
	}
	if len(got.Data) > 0 || len(vectors) > most || len(vectors) != len(want.Data) || got.Usage.TotalTokens != want.Usage.TotalTokens || got.Model != want.Model {
		t.Fatalf("%.300q: got %d vectors and %+v, want %+v", body, len(vectors), got, want)
	}
	for i, w := range want.Data {
		v := vectors[i]
		if v.Index != w.Index || v.Object != w.Object || len(v.Embedding) != len(w.Embedding) {
			t.Fatalf("%.300q: vector %d: got %+v, want %+v", body, i, v, w)
		}
		for k := range w.Embedding {
			if math.Float32bits(v.Embedding[k]) != math.Float32bits(w.Embedding[k]) {
				t.Fatalf("%.300q: vector %d: got %v, want %v", body, i, v.Embedding, w.Embedding)
			}
		}
	}
	return true
}

// answers are bodies, and whether their vectors are taken out.
func answers() map[string]bool {
	return map[string]bool{
		`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPw=="},{"object":"embedding","index":1,"embedding":"AABAQAAAgEA="}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":4}}`: true,
		"{\n  \"object\": \"list\",\n  \"data\": [\n    {\n      \"embedding\": \"AACAPw==\",\n      \"index\": 0\n    }\n  ],\n \"usage\": {\"total_tokens\": 4}\n}\n":                                           true,
		`{"id":"x","usage":{"total_tokens":9,"details":[{"a":1}]},"data":[{"index":10,"embedding":""}]}`:                                                                                                          true,
		`{"data":[]}`:                     true,
		`{"data" : [ ] , "model":"m"} ""`: true,
		// Judged by encoding/json in what is left.
		`{"data":[],`:                true,
		`{"data":[]}}`:               true,
		`{"model":"m" "data":[]}`:    true,
		`{"model":"data":[]}`:        true,
		`{"usage":"none","data":[]}`: true,
		// Other forms and nonsense.
		``:                       false,
		`{}`:                     false,
		`null {"data":[]}`:       false,
		`{} {"data":[]}`:         false,
		`[{"data":[]}]`:          false,
		`{"a":{"data":[]}}`:      false,
		`{"a":"\"data":[]}`:      false,
		`{"a":"\","data":[],""}`: false,
		`{"data":null}`:          false,
		`{"data":[null]}`:        false,
		`{"data":[{}]}`:          false,
		`{"data":[{"index":0,"embedding":"AACAPw=="}`:                         false,
		`{"data":[{"index":0,"embedding":"AACAPw=="},]}`:                      false,
		`{"data":[{"index":0,"embedding":"AACAPw==",}]}`:                      false,
		`{"data":[{"index":0,"embedding":[1,2]}]}`:                            false,
		`{"data":[{"index":0,"embedding":"AACAP=w="}]}`:                       false,
		`{"data":[{"index":0,"embedding":"AACAPw"}]}`:                         false,
		`{"data":[{"index":0,"embedding":"AACAPwA="}]}`:                       false,
		`{"data":[{"index":0,"embedding":"AACA\u0050w=="}]}`:                  false,
		"{\"data\":[{\"index\":0,\"embedding\":\"AACA\nPw==\"}]}":             false,
		"{\"data\":[{\"index\":0,\"embedding\":\"AACA\n\n\n\nPw==\"}]}":       false,
		"{\"data\":[{\"index\":0,\"embedding\":\"AACAPw==\r\n\r\n\"}]}":       false,
		`{"data":[{"index":0,"index":1,"embedding":""}]}`:                     false,
		`{"data":[{"index":00,"embedding":""}]}`:                              false,
		`{"data":[{"index":-1,"embedding":""}]}`:                              false,
		`{"data":[{"index":1.0,"embedding":""}]}`:                             false,
		`{"data":[{"index":1e2,"embedding":""}]}`:                             false,
		`{"data":[{"index":99999999999999999999,"embedding":""}]}`:            false,
		`{"data":[{"Index":1,"embedding":""}]}`:                               false,
		`{"data":[{"index":1,"embedding":"","extra":1}]}`:                     false,
		`{"data":[{"index":0,"embedding":""}],"data":[]}`:                     false,
		`{"data":[{"index":0,"embedding":""}],"DATA":null}`:                   false,
		`{"Data":[{"index":0,"embedding":""}],"data":[]}`:                     false,
		`{"data":[{"index":0,"embedding":""}],"d\u0061ta":[]}`:                false,
		`{"data":[` + strings.Repeat(`{"index":0,"embedding":""},`, 20) + `]`: false,
	}
}

func TestVectorsAreTakenOutOfUsualAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range answers() {
		if got := sameAsLibrary(t, []byte(body), 10); got != want {
			t.Errorf("%q: taken out %v, want %v", body, got, want)
		}
	}
}

func FuzzCutVectors(f *testing.F) {
	for body := range answers() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { sameAsLibrary(t, body, 10) })
}

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{"", "a", "eight by", "文档检索系统", "mixed 文 and é\xff\xfe\x80", strings.Repeat("é", 9)} {
		for range 50 {
			var narrow, wide int
			for i := range len(text) {
				if text[i] < utf8.RuneSelf {
					narrow++
				} else if utf8.RuneStart(text[i]) {
					wide++
				}
			}
			if got, want := embedding.EstimateTokens(text), narrow/4+wide+1; got != want {
				t.Fatalf("%q: got %d, want %d", text, got, want)
			}
			text += string([]byte{byte(rng.Uint32())})
		}
	}
}

// BenchmarkCutVectors reads an answer of 40 vectors; /json is what the library does.
func BenchmarkCutVectors(b *testing.B) {
	body := answerOf(40)
	b.Run("cut", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, _, ok := embedding.CutVectors(body, 40); !ok {
				b.Fatal("not taken out")
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := asLibrary(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// answerOf is an answer with so many vectors of 384 dimensions.
func answerOf(n int) []byte {
	var res struct {
		Object string         `json:"object"`
		Data   []any          `json:"data"`
		Usage  map[string]int `json:"usage"`
	}
	res.Object, res.Usage = "list", map[string]int{"total_tokens": 1}
	for i := range n {
		vector := embedding.EncodeVector(embedding.Fake{}.Vector(strings.Repeat("text ", i)))
		res.Data = append(res.Data, map[string]any{"object": "embedding", "index": i, "embedding": vector})
	}
	body, err := json.Marshal(res)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return body
}
