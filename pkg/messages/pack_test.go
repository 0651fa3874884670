package messages

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// The largest things that reach PackEmbed: a chunk's text and a space's prefixes and model name.
const (
	largestChunk  = 64 << 10
	largestPrefix = 1000
	largestModel  = 200
)

// largestRef has every name at its bound, the document id made of characters that JSON writes as six.
func largestRef() Ref {
	return Ref{
		Tenant: strings.Repeat("t", MaxNameBytes), KB: strings.Repeat("k", MaxNameBytes), KBID: 1<<63 - 1, Generation: 1<<63 - 1,
		Subspace: strings.Repeat("s", MaxNameBytes), DocID: strings.Repeat("\x01", MaxDocIDBytes), DocKey: 1<<63 - 1, Version: 1<<63 - 1, Run: 1<<31 - 1,
	}
}

func largestSpace(dims int) Space {
	return Space{
		Model: strings.Repeat("m", largestModel), Dims: dims, Metric: "cosine", Normalized: true,
		QueryPrefix: strings.Repeat("q", largestPrefix), PassagePrefix: strings.Repeat("p", largestPrefix),
	}
}

func chunksOf(texts ...string) []EmbedChunk {
	var out []EmbedChunk
	for i, text := range texts {
		sum := sha256.Sum256([]byte(text))
		out = append(out, EmbedChunk{Ordinal: i, Hash: sum[:], Text: text})
	}
	return out
}

func nastyTexts() map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, largestChunk/len(unit)) }
	return map[string]string{
		"letters": fill("a"), "quotes": fill(`"`), "backslashes": fill(`\`), "line ends": fill("\n"), "tabs": fill("\t"), "markup": fill("<&>"),
		"line separators": fill("\u2028"), "paragraph separators": fill("\u2029"), "dashes": fill("—"), "han": fill("年"), "emoji": fill("😀"),
		"replacement characters": fill("\ufffd"), "short": "a", "empty": "", "DEL": fill("\x7f"), "control characters": fill("\x01"),
	}
}

// checkParts checks everything PackEmbed promises of a division of chunks of which none is known.
func checkParts(t *testing.T, chunks []EmbedChunk, parts []EmbedWork) {
	t.Helper()
	var got []EmbedChunk
	for i, w := range parts {
		if w.Part != i || w.Parts != len(parts) || len(w.Chunks) == 0 || len(w.Chunks) > MaxPartChunks {
			t.Fatalf("part %d of %d is numbered %d of %d and has %d chunks", i, len(parts), w.Part, w.Parts, len(w.Chunks))
		}
		got = append(got, w.Chunks...)
		checkSizes(t, w)
	}
	if len(chunks) != len(got) || len(chunks) > 0 && !reflect.DeepEqual(got, chunks) {
		t.Fatalf("parts hold %d chunks of %d, or not in order", len(got), len(chunks))
	}
}

// checkSizes checks a message and the answer it will get.
func checkSizes(t *testing.T, w EmbedWork) {
	t.Helper()
	answer := IndexWork{Ref: w.Ref, Part: w.Part, Parts: w.Parts, Tokens: 1<<31 - 1}
	for _, c := range w.Chunks {
		answer.Vectors = append(answer.Vectors, IndexVector{Ordinal: c.Ordinal, Vector: bytes.Repeat([]byte{0xff}, 4*w.Space.Dims)})
	}
	for what, v := range map[string]any{"message": w, "answer": answer} {
		body, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > MaxWorkBytes {
			t.Errorf("the %s of part %d has %d bytes, over %d", what, w.Part, len(body), MaxWorkBytes)
		}
	}
}

func notKnown(int) bool { return false }

func TestPackedMessagesAndAnswersFit(t *testing.T) {
	for name, text := range nastyTexts() {
		for _, dims := range []int{1, 384, 4000} {
			chunks := chunksOf(text, "b", text, text, "", text)
			checkParts(t, chunks, PackEmbed(largestRef(), largestSpace(dims), chunks, notKnown))
			if t.Failed() {
				t.Fatalf("%s, %d dimensions", name, dims)
			}
		}
	}
}

func TestPackDividesByAnswersAndByCount(t *testing.T) {
	for dims, perPart := range map[int]int{8: MaxPartChunks, 384: MaxPartChunks, 4000: 11} {
		chunks := chunksOf(make([]string, 200)...)
		parts := PackEmbed(sampleRef(), largestSpace(dims), chunks, notKnown)
		checkParts(t, chunks, parts)
		if len(parts[0].Chunks) != perPart {
			t.Errorf("%d dimensions: %d chunks in the first part, want %d", dims, len(parts[0].Chunks), perPart)
		}
	}
}

func TestPackOfNothingIsNothing(t *testing.T) {
	if parts := PackEmbed(sampleRef(), sampleSpace(), nil, notKnown); len(parts) != 0 {
		t.Errorf("got %d parts", len(parts))
	}
	everything := func(int) bool { return true }
	if parts := PackEmbed(sampleRef(), sampleSpace(), chunksOf("a", "b"), everything); len(parts) != 0 {
		t.Errorf("got %d parts though every vector is known", len(parts))
	}
}

// A chunk that cannot fit at all (the chunker makes none) is a part by itself and takes none with it.
func TestPackLeavesAnImpossibleChunkAlone(t *testing.T) {
	chunks := chunksOf("a", strings.Repeat("x", MaxWorkBytes), "b")
	parts := PackEmbed(sampleRef(), sampleSpace(), chunks, notKnown)
	if len(parts) != 3 || len(parts[1].Chunks) != 1 {
		t.Errorf("got %d parts", len(parts))
	}
}

func TestPartsKeepTheirNumberWhateverHasArrived(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		texts := make([]string, rng.IntN(300))
		for i := range texts {
			texts[i] = strings.Repeat("x\"", rng.IntN(3000))
		}
		chunks := chunksOf(texts...)
		whole := PackEmbed(sampleRef(), largestSpace(384), chunks, notKnown)
		partOf := map[int]int{}
		for _, w := range whole {
			for _, c := range w.Chunks {
				partOf[c.Ordinal] = w.Part
			}
		}
		known := map[int]bool{}
		for i := range chunks {
			known[i] = rng.IntN(3) > 0
		}
		again := sampleRef()
		again.Run = 99
		seen := 0
		for _, w := range PackEmbed(again, largestSpace(384), chunks, func(i int) bool { return known[i] }) {
			if w.Parts != len(whole) || len(w.Chunks) == 0 {
				t.Fatalf("part %d of %d with %d chunks, want %d parts", w.Part, w.Parts, len(w.Chunks), len(whole))
			}
			for _, c := range w.Chunks {
				seen++
				if known[c.Ordinal] || partOf[c.Ordinal] != w.Part {
					t.Fatalf("chunk %d, known %v, moved from part %d to %d", c.Ordinal, known[c.Ordinal], partOf[c.Ordinal], w.Part)
				}
			}
		}
		if missing := len(chunks) - seen; missing != count(known) {
			t.Fatalf("%d chunks left out, %d known", missing, count(known))
		}
	}
}

func count(set map[int]bool) (n int) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

func TestEncodeDoesNotEscapeMarkup(t *testing.T) {
	body, err := Encode(map[string]string{"a": "<b>&\u2028"})
	if want := "{\"a\":\"<b>&\\u2028\"}"; err != nil || string(body) != want {
		t.Errorf("got %s, %v, want %s", body, err, want)
	}
	if _, err := Encode(func() {}); err == nil || !strings.Contains(err.Error(), "func()") {
		t.Errorf("got %v, want an error that names the type", err)
	}
}

func TestWorkMessagesAreChecked(t *testing.T) {
	for field, change := range map[string]func(*EmbedWork){
		"tenant": func(w *EmbedWork) { w.Tenant = "" }, "kb": func(w *EmbedWork) { w.KB = "" }, "kbId": func(w *EmbedWork) { w.KBID = 0 },
		"generation": func(w *EmbedWork) { w.Generation = -1 }, "docId": func(w *EmbedWork) { w.DocID = "" }, "docKey": func(w *EmbedWork) { w.DocKey = 0 },
		"version": func(w *EmbedWork) { w.Version = 0 }, "chunks": func(w *EmbedWork) { w.Chunks = nil },
		"space": func(w *EmbedWork) { w.Space.Dims = 0 },
	} {
		w := EmbedWork{Ref: sampleRef(), Space: sampleSpace(), Parts: 1, Chunks: chunksOf("a")}
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&w)
		wantField(t, field, w.Validate(), field)
	}
}

func TestMessageIDsTellTheirStage(t *testing.T) {
	ref := sampleRef()
	ref.DocID, ref.Run = "a/b c", 2
	id := ref.MsgID(StageEmbed, 7)
	if want := "acme/12/31/legal/" + DocToken("a/b c") + "/3/embed/7/2"; id != want {
		t.Errorf("got %s, want %s", id, want)
	}
	ref.Build = true
	if built := ref.MsgID(StageEmbed, 7); built == id || StageOfMsgID(built) != StageEmbed {
		t.Errorf("work of a job about the same version has the id %s, that of the submit is %s", built, id)
	}
	for in, want := range map[string]string{id: StageEmbed, "": "", "a/b": "", id + "/more": "", "import-17": ""} {
		if got := StageOfMsgID(in); got != want {
			t.Errorf("StageOfMsgID(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPassageText(t *testing.T) {
	s := sampleSpace()
	for context, want := range map[string]string{"": "passage: text", "Title\nHeading": "passage: Title\nHeading\ntext"} {
		if got := s.PassageText(context, "text"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
