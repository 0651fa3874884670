package embedding_test

import (
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/embedding"
)

func TestSpaceIDIsStable(t *testing.T) {
	t.Parallel()
	// Vectors on disk are found by this string: a change orphans them.
	const want = "multilingual-e5-small:384:cosine:unit:dca87e4a8c98"
	if got := embedding.DefaultSpace().ID(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSpaceIDTellsEveryFieldApart(t *testing.T) {
	t.Parallel()
	base := embedding.DefaultSpace()
	seen := map[string]string{base.ID(): "the base"}
	for name, change := range map[string]func(*embedding.Space){
		"model":      func(s *embedding.Space) { s.Model = "other" },
		"dims":       func(s *embedding.Space) { s.Dims = 385 },
		"metric":     func(s *embedding.Space) { s.Metric = embedding.MetricIP },
		"normalized": func(s *embedding.Space) { s.Normalized = false },
		"query":      func(s *embedding.Space) { s.QueryPrefix = "" },
		"passage":    func(s *embedding.Space) { s.PassagePrefix = "" },
		"border":     func(s *embedding.Space) { s.QueryPrefix, s.PassagePrefix = "query: p", "assage: " },
	} {
		s := base
		change(&s)
		if other, ok := seen[s.ID()]; ok {
			t.Errorf("%s gives the id of %s", name, other)
		}
		seen[s.ID()] = name
	}
}

func TestSpaceTexts(t *testing.T) {
	t.Parallel()
	s := embedding.DefaultSpace()
	for _, c := range []struct{ got, want string }{
		{s.PassageText("", "text"), "passage: text"},
		{s.PassageText("Title\nChapter", "text"), "passage: Title\nChapter\ntext"},
		{s.QueryText("text"), "query: text"},
		{embedding.SpaceOf("bge-m3", 1024).PassageText("T", "x"), "T\nx"},
		{embedding.SpaceOf("intfloat/multilingual-e5-large", 1024).QueryPrefix, "query: "},
		{embedding.SpaceOf("e5-mistral-7b-instruct", 4096).QueryPrefix, ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestSpaceValidateNamesFields(t *testing.T) {
	t.Parallel()
	if err := embedding.DefaultSpace().Validate(); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("x", 2000)
	err := embedding.Space{Metric: "hamming", QueryPrefix: long, PassagePrefix: long}.Validate()
	for _, field := range []string{"model", "dims", "metric", "queryPrefix", "passagePrefix"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

func TestVectorRoundTrip(t *testing.T) {
	t.Parallel()
	want := embedding.Fake{Dims: 5}.Vector("text")
	got, err := embedding.DecodeVector(embedding.EncodeVector(want))
	if err != nil || len(got) != 5 {
		t.Fatalf("got %v, error %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d: got %v, want %v", i, got[i], want[i])
		}
	}
	if _, err := embedding.DecodeVector(make([]byte, 7)); err == nil {
		t.Error("7 bytes were read as floats")
	}
}

func TestFakeVectors(t *testing.T) {
	t.Parallel()
	f := embedding.Fake{}
	for _, text := range []string{"", " ", "one", "文档", strings.Repeat("long text ", 2000)} {
		if got := cosine(f.Vector(text), f.Vector(text)); got < 0.9999 {
			t.Errorf("%.20q: not the same vector twice (%v)", text, got)
		}
	}
	q := f.Vector("the height of the weir")
	near, far := cosine(q, f.Vector("The weir, its height")), cosine(q, f.Vector("stocks fell today"))
	if near < far+0.3 {
		t.Errorf("cosine %.3f with shared words, %.3f without", near, far)
	}
	if got := cosine(f.Vector("a b"), f.Vector("b a")); got > 0.9999 {
		t.Error("two texts have one vector")
	}
}
