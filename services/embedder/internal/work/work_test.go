package work_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/embedder/internal/work"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// embedFunc is an Embedder.
type embedFunc func(texts []string) (embedding.Result, error)

var _ work.Embedder = embedFunc(nil)

func (f embedFunc) Embed(_ context.Context, _ embedding.Space, lane embedding.Lane, texts []string) (embedding.Result, error) {
	if lane != embedding.Batch {
		return embedding.Result{}, errors.New("work must use the batch lane")
	}
	return f(texts)
}

func vectors(texts []string) embedding.Result {
	var r embedding.Result
	for _, t := range texts {
		r.Vectors = append(r.Vectors, embedding.Fake{}.Vector(t))
	}
	return r
}

func handler(f embedFunc) *work.Handler {
	return work.New(func(string) (work.Embedder, error) { return f, nil })
}

func message(chunks int) messages.EmbedWork {
	w := messages.EmbedWork{
		Ref: messages.Ref{
			Tenant: "t", KB: "k", KBID: 1, Generation: 1, DocID: "d", DocKey: 1, Version: 3,
		},
		Space: messages.Space(embedding.DefaultSpace()), Part: 2, Parts: 5,
	}
	for i := range chunks {
		text := fmt.Sprintf("passage: chunk %d", i)
		hash := embedding.Hash(text)
		w.Chunks = append(w.Chunks, messages.EmbedChunk{Ordinal: 10 + i, Hash: hash[:], Text: text})
	}
	return w
}

func TestHandleAnswersEveryChunk(t *testing.T) {
	t.Parallel()
	in := message(7)
	out, err := handler(func(texts []string) (embedding.Result, error) { return vectors(texts), nil }).Handle(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if out.Ref != in.Ref || out.Part != 2 || out.Parts != 5 || len(out.Vectors) != 7 {
		t.Fatalf("got part %d of %d with %d vectors of %+v", out.Part, out.Parts, len(out.Vectors), out.Ref)
	}
	for i, v := range out.Vectors {
		want := embedding.EncodeVector(embedding.Fake{}.Vector(in.Chunks[i].Text))
		if v.Ordinal != 10+i || string(v.Vector) != string(want) {
			t.Errorf("vector %d is of ordinal %d or not the text's", i, v.Ordinal)
		}
	}
}

func TestHandleRefusesBadMessages(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*messages.EmbedWork){
		"chunks":         func(w *messages.EmbedWork) { w.Chunks = nil },
		"version":        func(w *messages.EmbedWork) { w.Version = 0 },
		"space":          func(w *messages.EmbedWork) { w.Space.Metric = "hamming" },
		"chunks[1].text": func(w *messages.EmbedWork) { w.Chunks[1].Text = strings.Repeat("x", 70<<10) },
		"chunks[0].hash": func(w *messages.EmbedWork) { w.Chunks[0].Hash = []byte("no") },
	} {
		in := message(3)
		spoil(&in)
		_, err := handler(func([]string) (embedding.Result, error) { return embedding.Result{}, errors.New("called") }).Handle(t.Context(), in)
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	in := message(100)
	in.Space.Dims = 4000
	_, err := handler(nil).Handle(t.Context(), in)
	if e, ok := messages.AsError(err); !ok || e.Field != "chunks" {
		t.Errorf("an answer over the limit: got %v", err)
	}
}

func TestHandleNamesTheRejectedChunk(t *testing.T) {
	t.Parallel()
	_, err := handler(func(texts []string) (embedding.Result, error) {
		r := vectors(texts)
		r.Vectors[2], r.Rejected = nil, map[int]error{2: embedding.ErrRejected}
		return r, nil
	}).Handle(t.Context(), message(4))
	e, ok := messages.AsError(err)
	if !ok || e.Code != messages.CodeEmbeddingRejected || !strings.Contains(e.Message, "chunk 12") {
		t.Errorf("got %v", err)
	}
}

func TestHandleSortsErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		code   messages.Code
		outage bool
	}{
		{&embedding.Error{Kind: embedding.ErrUnavailable}, "", true},
		{&embedding.Error{Kind: embedding.ErrThrottled}, "", true},
		{&embedding.Error{Kind: embedding.ErrUnauthorized}, "", true},
		{context.DeadlineExceeded, "", true},
		{&embedding.Error{Kind: embedding.ErrBadAnswer}, "", false},
		{&embedding.Error{Kind: embedding.ErrDimension}, messages.CodeDimensionMismatch, false},
	} {
		_, err := handler(func([]string) (embedding.Result, error) { return embedding.Result{}, c.err }).Handle(t.Context(), message(1))
		if got := work.Outage(err); got != c.outage {
			t.Errorf("%v: outage %v, want %v", c.err, got, c.outage)
		}
		if e, ok := messages.AsError(err); ok != (c.code != "") || ok && e.Code != c.code {
			t.Errorf("%v: got %v, want code %q", c.err, err, c.code)
		}
	}
}

func TestHandleKeepsWhatAFailedTryComputed(t *testing.T) {
	t.Parallel()
	sent := 0
	h := handler(func(texts []string) (embedding.Result, error) {
		sent += len(texts)
		r := vectors(texts)
		if len(texts) > 2 {
			clear(r.Vectors[3:])
			return r, &embedding.Error{Kind: embedding.ErrUnavailable}
		}
		return r, nil
	})
	if _, err := h.Handle(t.Context(), message(5)); !work.Outage(err) {
		t.Fatalf("got %v, want an outage", err)
	}
	out, err := h.Handle(t.Context(), message(5))
	if err != nil || len(out.Vectors) != 5 || sent != 7 {
		t.Fatalf("error %v, %d vectors, %d texts sent; want 5 and then the 2 missing", err, len(out.Vectors), sent)
	}
	for i, v := range out.Vectors {
		if len(v.Vector) != 4*384 {
			t.Errorf("vector %d has %d bytes", i, len(v.Vector))
		}
	}
	if _, err := h.Handle(t.Context(), message(5)); !work.Outage(err) {
		t.Error("what was delivered is still kept in memory")
	}
}

// BenchmarkHandle is what a message of ten chunks costs besides the requests for its vectors.
func BenchmarkHandle(b *testing.B) {
	in := message(10)
	for i := range in.Chunks {
		c := &in.Chunks[i]
		c.Text = strings.Repeat(fmt.Sprintf("word%d and others ", i), 75)
		hash := embedding.Hash(c.Text)
		c.Hash = hash[:]
	}
	body, err := messages.Encode(in)
	if err != nil {
		b.Fatal(err)
	}
	var known []string
	for _, c := range in.Chunks {
		known = append(known, c.Text)
	}
	result := vectors(known)
	h := work.New(func(string) (work.Embedder, error) {
		return work.NewJoined(embedFunc(func([]string) (embedding.Result, error) { return result, nil }), 7, usual), nil
	})
	b.ReportAllocs()
	for b.Loop() {
		var in messages.EmbedWork
		if err := in.UnmarshalBinary(body); err != nil {
			b.Fatal(err)
		}
		out, err := h.Handle(b.Context(), in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := messages.Encode(out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(10*b.N), "µs/chunk")
}
