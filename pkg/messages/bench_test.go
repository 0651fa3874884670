package messages

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchText is about 13 KB of Markdown, or of Chinese, with line breaks and quotes.
func benchText(sentence string) string {
	var text strings.Builder
	for section := 0; text.Len() < 13_000; section++ {
		fmt.Fprintf(&text, "# Section %d\n\n", section)
		for range 12 {
			text.WriteString(sentence)
		}
		text.WriteString("\n\n")
	}
	return text.String()
}

const (
	benchEnglish = "The cover ends with the month in which the pump was sold, whatever \"sold\" means. "
	benchChinese = "保修期自购买之日起计算，“购买”以发票日期为准；超过期限的维修需另行付费。"
)

func benchSubmits(b *testing.B) map[string][]byte {
	b.Helper()
	english, chinese := benchText(benchEnglish), benchText(benchChinese)
	base := Submit{DocID: "handbook-17", Title: "Handbook", ContentType: "text/markdown"}
	meta := raw(`{"year":2025,"lang":["en","de"],"owner":"docs","reviewed":"2025-04-01"}`)
	out := map[string][]byte{}
	for name, change := range map[string]func(*Submit){
		"text":     func(s *Submit) { s.Text = &english },
		"chinese":  func(s *Submit) { s.Text = &chinese },
		"metadata": func(s *Submit) { s.Text, s.Metadata = &english, meta },
		"base64":   func(s *Submit) { s.Data = []byte(english) },
	} {
		s := base
		change(&s)
		body, err := Encode(s)
		if err != nil {
			b.Fatal(err)
		}
		out[name] = body
	}
	return out
}

func BenchmarkDecodeSubmit(b *testing.B) {
	for name, body := range benchSubmits(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeSubmit(none, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeLine(b *testing.B) {
	text := benchText(benchEnglish)
	for name, value := range map[string]any{"submit": Submit{DocID: "handbook-17", Text: &text}, "object": map[string]string{"_id": "handbook-17", "body": text}} {
		line, err := Encode(value)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeLine(line, "f#1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeStrictRequest(b *testing.B) {
	body, err := Encode(sampleRetrieve())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeStrict(body, new(RetrieveRequest)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeEvent(b *testing.B) {
	e := Event{
		Tenant: "acme", KB: "manuals", KBID: 17, Subspace: DefaultSubspace, DocID: "handbook-17", Version: 3, Status: StatusIndexing,
		SubmitID: "import-17", At: time.Date(2025, 4, 1, 12, 0, 0, 123456789, time.UTC),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(e); err != nil {
			b.Fatal(err)
		}
	}
}

func benchWork() (EmbedWork, IndexWork) {
	ref := Ref{Tenant: "acme", KB: "manuals", KBID: 17, Generation: 4, Subspace: DefaultSubspace, DocID: "handbook-17", DocKey: 99, Version: 3}
	embed := EmbedWork{Ref: ref, Space: sampleSpace(), Parts: 1}
	index := IndexWork{Ref: ref, Parts: 1, Tokens: 3000}
	for i := range 10 {
		embed.Chunks = append(embed.Chunks, EmbedChunk{Ordinal: i, Hash: make([]byte, 32), Text: strings.Repeat(benchEnglish, 15)})
		index.Vectors = append(index.Vectors, IndexVector{Ordinal: i, Vector: make([]byte, 4*384)})
	}
	return embed, index
}

// BenchmarkWork is what the messages of a document of ten chunks take to be written and read.
func BenchmarkWork(b *testing.B) {
	embed, index := benchWork()
	parse := ParseWork{Ref: embed.Ref, SubmitID: "import-17", Source: "17/js/1764460800123456789/42"}
	for name, value := range map[string]any{"embed": embed, "index": index, "parse": parse} {
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Encode(value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("embed/decode", func(b *testing.B) { benchRead(b, embed, (*EmbedWork).UnmarshalBinary) })
	b.Run("index/decode", func(b *testing.B) { benchRead(b, index, (*IndexWork).UnmarshalBinary) })
}

func benchRead[T any](b *testing.B, value T, read func(*T, []byte) error) {
	body, err := Encode(value)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := read(new(T), body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMsgID(b *testing.B) {
	ref := Ref{Tenant: "acme", KB: "manuals", KBID: 17, Generation: 4, Subspace: DefaultSubspace, DocID: "handbook-17", DocKey: 99, Version: 3}
	b.ReportAllocs()
	for b.Loop() {
		_ = ref.MsgID(StageEmbed, 0)
	}
}

func BenchmarkEventSubject(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = EventSubject("acme", "manuals", "handbook-17", StatusIndexing)
		_ = WorkSubject(StageEmbed, "acme", "manuals")
	}
}

func BenchmarkDocToken(b *testing.B) {
	for name, id := range map[string]string{"plain": "handbook-17", "hashed": "17/js/1764460800123456789/42", "long": strings.Repeat("long id ", 60)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = DocToken(id)
			}
		})
	}
}

func BenchmarkValidateMetadata(b *testing.B) {
	schema := MetadataSchema{{Name: "year", Type: TypeLong}, {Name: "lang", Type: TypeStringList}, {Name: "owner", Type: TypeString}, {Name: "reviewed", Type: TypeDate}}
	meta := raw(`{"year":2025,"lang":["en","de"],"owner":"docs","reviewed":"2025-04-01"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.ValidateMetadata(meta); err != nil {
			b.Fatal(err)
		}
	}
}
