package client

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// fixed is a retriever that always returns the same.
type fixed struct {
	found []RetrievalResult
	err   error
	wait  bool // for the end of the context
}

func (f fixed) Retrieve(ctx context.Context, _ string, _ RetrievalConfig) ([]RetrievalResult, error) {
	if f.wait {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.found, f.err
}

func found(text string, score float64) RetrievalResult {
	return RetrievalResult{Text: text, Score: score, DocID: "doc of " + text, ChunkID: "doc of " + text + "#0", Metadata: map[string]any{"t": text}}
}

func multi(t *testing.T, sources ...Source) *MultiRetriever {
	t.Helper()
	m, err := NewMultiRetriever(sources...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func summary(list []MultiKBRetrievalResult) string {
	var out []string
	for _, r := range list {
		out = append(out, r.Text+":"+strings.Join(r.KBIDs, "+"))
	}
	return strings.Join(out, " ")
}

func TestEqualTextsOfSeveralKnowledgeBasesAreOne(t *testing.T) {
	t.Parallel()
	raw, scaled := 12.5, 0.9
	second := found("Y", 0.85)
	second.DocID, second.RawScore, second.RawScoreScaled = "other", &raw, &scaled
	kb1, kb2 := fixed{found: []RetrievalResult{found("X", 0.9), found("Y", 0.8)}}, fixed{found: []RetrievalResult{second, found("Z", 0.7)}}
	m := multi(t, Source{KB: "kb1", Retriever: kb1}, Source{KB: "kb2", Retriever: kb2})
	got, err := m.RetrieveWithSource(t.Context(), "q", RetrievalConfig{})
	if err != nil || summary(got.Results) != "X:kb1 Y:kb1+kb2 Z:kb2" || len(got.Failures) != 0 {
		t.Fatalf("got %s, %v", summary(got.Results), err)
	}
	y := got.Results[1]
	want := []ResultSource{{KB: "kb1", DocID: "doc of Y", ChunkID: "doc of Y#0", Score: 0.8}, {KB: "kb2", DocID: "other", ChunkID: "doc of Y#0", Score: 0.85}}
	if y.Score != 0.85 || y.RawScore != 12.5 || y.RawScoreScaled != 0.9 || y.DocID != "other" || !reflect.DeepEqual(y.Sources, want) {
		t.Errorf("got %+v", y)
	}
	if x := got.Results[0]; x.RawScore != 0.9 || x.RawScoreScaled != 0.9 {
		t.Errorf("got %+v, want the score where there is no other", x)
	}
	two := 2
	if got, err := m.RetrieveWithSource(t.Context(), "q", RetrievalConfig{TopK: &two}); err != nil || summary(got.Results) != "X:kb1 Y:kb1+kb2" {
		t.Errorf("top 2: got %s, %v", summary(got.Results), err)
	}
	if texts, _, err := m.RetrieveTexts(t.Context(), "q", RetrievalConfig{}); err != nil || strings.Join(texts, "") != "XYZ" {
		t.Errorf("texts: got %v, %v", texts, err)
	}
	if list, err := m.Retrieve(t.Context(), "q", RetrievalConfig{}); err != nil || len(list) != 3 || list[1].DocID != "other" {
		t.Errorf("as a retriever: got %+v, %v", list, err)
	}
	if kb1.found[1].Score != 0.8 {
		t.Error("a source's list was changed")
	}
}

func TestFiveAreReturnedWhereNothingIsSaid(t *testing.T) {
	t.Parallel()
	var list []RetrievalResult
	for _, text := range strings.Split("a b c d e f g", " ") {
		list = append(list, found(text, 1))
	}
	got, err := multi(t, Source{KB: "kb", Retriever: fixed{found: list}}).RetrieveWithSource(t.Context(), "q", RetrievalConfig{})
	if err != nil || summary(got.Results) != "a:kb b:kb c:kb d:kb e:kb" {
		t.Errorf("got %s, %v, want the first five in their order", summary(got.Results), err)
	}
}

func TestFailuresOnTheWayAreTolerated(t *testing.T) {
	t.Parallel()
	good := Source{KB: "good", Retriever: fixed{found: []RetrievalResult{found("X", 0.9)}}}
	for what, bad := range map[string]fixed{
		"no answer in time":   {wait: true},
		"an overload":         {err: messages.Errorf(messages.CodeOverloaded, "busy")},
		"a broken connection": {err: errors.New("gone")},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		if bad.wait {
			ctx, cancel = context.WithTimeout(t.Context(), 1)
		}
		m := multi(t, good, Source{KB: "bad", Retriever: bad})
		got, err := m.RetrieveWithSource(ctx, "q", RetrievalConfig{})
		if err != nil || summary(got.Results) != "X:good" || len(got.Failures) != 1 || got.Failures[0].KB != "bad" || got.Failures[0].Err == nil {
			t.Errorf("%s: got %s, %+v, %v", what, summary(got.Results), got.Failures, err)
		}
		if _, err := m.Retrieve(ctx, "q", RetrievalConfig{}); err == nil {
			t.Errorf("%s: as a retriever it says nothing of it", what)
		}
		got, err = multi(t, Source{KB: "bad", Retriever: bad}).RetrieveWithSource(ctx, "q", RetrievalConfig{})
		wantCode(t, what, err, messages.CodeAllKBsFailed, "")
		if len(got.Results) != 0 || len(got.Failures) != 1 {
			t.Errorf("%s: got %+v", what, got)
		}
		cancel()
	}
	if got, err := multi(t).RetrieveWithSource(t.Context(), "q", RetrievalConfig{}); err != nil || len(got.Results) != 0 || got.Results == nil {
		t.Errorf("no knowledge bases: got %+v, %v", got, err)
	}
}

func TestWhatIsWrongWithTheRequestFailsTheCall(t *testing.T) {
	t.Parallel()
	wrong := fixed{err: messages.Invalid("filter", "field is not declared")}
	m := multi(t, Source{KB: "a", Retriever: fixed{wait: true}}, Source{KB: "b", Retriever: wrong})
	_, err := m.RetrieveWithSource(within(t, testkit.Patience), "q", RetrievalConfig{}) // the other is cancelled, or this takes long
	wantCode(t, "filter", err, messages.CodeValidation, "filter")
	zero := 0
	_, err = m.RetrieveWithSource(t.Context(), "q", RetrievalConfig{TopK: &zero})
	wantCode(t, "top 0", err, messages.CodeTopKInvalid, "topK")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.RetrieveWithSource(ctx, "q", RetrievalConfig{}); err == nil {
		t.Error("a cancelled call passes")
	}
	_, err = NewMultiRetriever(Source{KB: "a"})
	wantCode(t, "no retriever", err, messages.CodeRetrieverNotFound, "")
	_, err = NewMultiRetriever(Source{KB: "a", Retriever: wrong}, Source{KB: "a", Retriever: wrong})
	wantCode(t, "twice", err, messages.CodeValidation, "sources[1].kb")
	_, err = NewMultiRetriever(Source{Retriever: wrong})
	wantCode(t, "no name", err, messages.CodeValidation, "sources[0].kb")
}

// meeting answers when all have come.
type meeting struct{ all *sync.WaitGroup }

func (m meeting) Retrieve(ctx context.Context, _ string, cfg RetrievalConfig) ([]RetrievalResult, error) {
	m.all.Done()
	met := make(chan struct{})
	go func() { m.all.Wait(); close(met) }()
	select {
	case <-met:
		return []RetrievalResult{found(strings.Join(cfg.Subspace, ","), 1)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func TestSourcesAreAskedAtOnceEachInItsSubspace(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(5)
	var sources []Source
	for _, kb := range []string{"a", "b", "c", "d"} {
		sources = append(sources, Source{KB: kb, Retriever: meeting{&all}, Subspace: []string{kb}})
	}
	sources = append(sources, Source{KB: "e", Retriever: meeting{&all}})
	got, err := multi(t, sources...).RetrieveWithSource(within(t, testkit.Patience), "q", RetrievalConfig{Subspace: []string{"common"}})
	if err != nil || summary(got.Results) != "a:a b:b c:c d:d common:e" {
		t.Errorf("got %s, %v", summary(got.Results), err)
	}
}
