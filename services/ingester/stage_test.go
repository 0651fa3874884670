package ingester_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/stage"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// parser reads texts as they are: a document of one paragraph under the caller's title. It counts how many it
// reads at once, and waits for release where there is one.
type parser struct {
	title   string // found in the content
	release chan struct{}

	mu         sync.Mutex
	now, most  int
	calls      int
	inputs     []worker.Input
	refuseWith error
}

var _ stage.Parser = (*parser)(nil)

func (p *parser) Parse(ctx context.Context, in worker.Input) (parse.Document, error) {
	p.mu.Lock()
	p.calls++
	p.inputs = append(p.inputs, in)
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.now--
		p.mu.Unlock()
	}()
	if p.release != nil {
		select {
		case <-p.release:
		case <-ctx.Done():
			return parse.Document{}, ctx.Err()
		}
	}
	data, err := io.ReadAll(in.Open(ctx))
	if err != nil {
		return parse.Document{}, err
	}
	doc := parse.Document{Title: in.Title, Text: string(data), Format: "txt"}
	if doc.Title == "" {
		doc.Title = p.title
	}
	if doc.Text != "" {
		doc.Blocks = []parse.Block{{Kind: parse.KindParagraph, End: len(doc.Text)}}
	}
	return doc, p.refuseWith
}

// readers is a pool of real workers.
func readers(t *testing.T) *worker.Pool {
	t.Helper()
	p := worker.New(worker.Config{})
	t.Cleanup(p.Close)
	return p
}

func (p *parser) running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// parseWork takes a submit in and returns the body of its parse work.
func (l *lab) parseWork(kb, body string) ([]byte, messages.ParseWork) {
	l.t.Helper()
	from := l.from(body, nil)
	from.KB = kb
	v, err := l.intake.Submit(l.t.Context(), from)
	if err != nil {
		l.t.Fatal(err)
	}
	data := v.Messages[len(v.Messages)-1].Body
	var w messages.ParseWork
	if err := json.Unmarshal(data, &w); err != nil || w.DocKey == 0 {
		l.t.Fatalf("no parse work: %s", data)
	}
	return data, w
}

// handle runs the stage over a body.
func handle(t *testing.T, h *stage.Handler, body []byte) []bus.Message {
	t.Helper()
	out, err := h.Handle(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stagedAs is the staged chunks of a version: context, then content.
func (l *lab) stagedAs(w messages.ParseWork) []string {
	l.t.Helper()
	var out []string
	for _, t := range l.staged(w) {
		out = append(out, t.Context+"|"+t.Content)
	}
	return out
}

func (l *lab) staged(w messages.ParseWork) []pgstore.StagedText {
	l.t.Helper()
	texts, err := l.store.StagedTexts(l.t.Context(), w.Ref)
	if err != nil {
		l.t.Fatal(err)
	}
	return texts
}

func TestParsingAsksForTheVectorsItLacks(t *testing.T) {
	l := newLab(t, nil)
	pub := &publisher{}
	h := stage.New(l.store, pub, readers(t), nil, 4, 1<<20)
	body, w := l.parseWork("docs", `{"docId":"d","title":"Pumps","contentType":"text/markdown","text":"# Seals\n\nfirst paragraph\n\n# Valves\n\nsecond"}`)
	out := handle(t, h, body)
	wantTold(t, "published meanwhile", pub.sent, "Indexing v1 m1")
	wantTold(t, "follows", out, "embed")
	var embed messages.EmbedWork
	if err := embed.UnmarshalBinary(out[0].Body); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range embed.Chunks {
		texts = append(texts, c.Text)
	}
	staged := l.stagedAs(w)
	if len(staged) == 0 || len(texts) != len(staged) || embed.Ref != w.Ref || out[0].ID != w.MsgID(messages.StageEmbed, 0) {
		t.Fatalf("got %q for %q", texts, staged)
	}
	for i, s := range staged {
		context, content, _ := strings.Cut(s, "|")
		if want := "passage: " + context + "\n" + content; texts[i] != want || !strings.HasPrefix(context, "Pumps") {
			t.Errorf("chunk %d: got %q, want %q", i, texts[i], want)
		}
	}
	again := handle(t, h, body)
	if !slices.Equal(names(again), names(out)) || string(again[0].Body) != string(out[0].Body) {
		t.Errorf("delivered again: got %v, want %v", names(again), names(out))
	}
	if len(pub.sent) != 1 || len(l.stagedAs(w)) != len(staged) {
		t.Errorf("delivered again: told %v, staged %d", told(t, pub.sent), len(l.stagedAs(w)))
	}
}

func TestOnlyMissingVectorsAreAskedForAgain(t *testing.T) {
	l := newLab(t, nil)
	l.createKB("whole", func(n *pgstore.NewKB) { n.Generation.Space.Dims = 4000 }) // few chunks a message
	h := stage.New(l.store, &publisher{}, readers(t), nil, 4, 8<<20)
	text := strings.Repeat("A sentence about pumps and their seals, and about what happens when they run dry. ", 1000)
	body, w := l.parseWork("whole", `{"docId":"d","text":"`+text+`"}`)
	out := handle(t, h, body)
	if len(out) < 3 {
		t.Fatalf("got %d messages, want several", len(out))
	}
	var second messages.EmbedWork
	if err := second.UnmarshalBinary(out[1].Body); err != nil {
		t.Fatal(err)
	}
	var vectors []pgstore.Vector
	for _, c := range second.Chunks {
		vectors = append(vectors, pgstore.Vector{Ordinal: c.Ordinal, Values: make([]float32, 4000)})
	}
	if err := l.store.StageVectors(t.Context(), w.Ref, vectors); err != nil {
		t.Fatal(err)
	}
	again := handle(t, h, body)
	if want := slices.Delete(slices.Clone(names(out)), 1, 2); !slices.Equal(names(again), want) {
		t.Errorf("got %v, want all but the second", names(again))
	}
}

func TestFullReuseGoesStraightToTheIndex(t *testing.T) {
	l := newLab(t, nil)
	h := stage.New(l.store, &publisher{}, readers(t), nil, 4, 1<<20)
	body, w := l.parseWork("docs", `{"docId":"first","text":"the same words"}`)
	wantTold(t, "new", handle(t, h, body), "embed")
	if err := l.store.StageVectors(t.Context(), w.Ref, []pgstore.Vector{{Values: []float32{1, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	res, err := l.store.SwapVersions(t.Context(), w.Generation, []pgstore.Finished{{Candidate: pgstore.Candidate{DocKey: w.DocKey, Version: w.Version}}})
	if err != nil || len(res.Swapped) != 1 {
		t.Fatalf("got %+v (%v)", res, err)
	}
	body, _ = l.parseWork("docs", `{"docId":"second","text":"the same words"}`)
	out := handle(t, h, body)
	wantTold(t, "known", out, "index")
	var index messages.IndexWork
	if err := index.UnmarshalBinary(out[0].Body); err != nil || index.Parts != 1 || len(index.Vectors) != 0 || index.Generation != w.Generation {
		t.Errorf("got %+v (%v), want one part without vectors", index, err)
	}
	wantTold(t, "delivered again", handle(t, h, body), "index")
}

func TestAKnowledgeBaseWithoutVectorsNeedsNone(t *testing.T) {
	l := newLab(t, nil)
	l.createKB("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	h := stage.New(l.store, &publisher{}, readers(t), nil, 4, 1<<20)
	body, w := l.parseWork("words", `{"docId":"d","title":"T","text":"words"}`)
	wantTold(t, "bm25", handle(t, h, body), "index")
	if got := l.stagedAs(w); !slices.Equal(got, []string{"T|words"}) {
		t.Errorf("got %q", got)
	}
}

func TestATitleAloneIsAChunk(t *testing.T) {
	l := newLab(t, nil)
	h := stage.New(l.store, &publisher{}, &parser{title: "Found inside"}, nil, 4, 1<<20)
	body, w := l.parseWork("docs", `{"docId":"d","text":""}`)
	wantTold(t, "title only", handle(t, h, body), "embed")
	if got := l.stagedAs(w); !slices.Equal(got, []string{"Found inside|"}) {
		t.Errorf("got %q, want the title", got)
	}
	if n := l.staged(w)[0].LexLen; n != 2 {
		t.Errorf("its full-text length: got %d, want 2 words", n)
	}
}

func TestLongTitlesLeaveRoomForText(t *testing.T) {
	l := newLab(t, nil)
	l.createKB("small", func(n *pgstore.NewKB) {
		n.Generation.Chunking = messages.Chunking{Strategy: messages.ChunkTokens, Size: messages.MinChunkSize}.WithDefaults()
	})
	title := strings.Repeat("überlang ", 200) // 2,000 bytes
	text := strings.TrimSpace(strings.Repeat("words of the text ", 100))
	for _, kb := range []string{"docs", "small"} {
		h := stage.New(l.store, &publisher{}, &parser{}, nil, 4, 1<<20)
		body, w := l.parseWork(kb, `{"docId":"d","title":"`+title+`","text":"`+text+`"}`)
		handle(t, h, body)
		var all []string
		for _, s := range l.stagedAs(w) {
			context, content, _ := strings.Cut(s, "|")
			if len(context) > 512 || !strings.HasPrefix(title, context) || len(context) < 500 {
				t.Fatalf("%s: context of %d bytes, want the title up to 512", kb, len(context))
			}
			if len(content) > 4*messages.DefaultChunkSize || content == "" {
				t.Errorf("%s: a chunk of %d bytes", kb, len(content))
			}
			all = append(all, content)
		}
		if first, last := all[0], all[len(all)-1]; !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || len(all) < 2 {
			t.Errorf("%s: %d chunks from %.20q to %.20q", kb, len(all), first, last)
		}
		if n := l.count("SELECT length(parsed_title) FROM document_versions WHERE document_key = $1", w.DocKey); n != len([]rune(title)) {
			t.Errorf("%s: the title kept has %d characters, want %d", kb, n, len([]rune(title)))
		}
	}
}

func TestWhatTheParserIsTold(t *testing.T) {
	l := newLab(t, nil)
	p := &parser{}
	h := stage.New(l.store, &publisher{}, p, nil, 4, 1<<20)
	for _, body := range []string{
		`{"docId":"d.md","ossKey":"folder/key.txt","title":"T","contentType":"a/b","text":"x"}`, `{"docId":"named.md","ossKey":"key","text":"x"}`,
	} {
		work, _ := l.parseWork("docs", body)
		handle(t, h, work)
	}
	for i, want := range []worker.Input{{Name: "folder/key.txt", Title: "T", ContentType: "a/b"}, {Name: "named.md", ContentType: "text/plain"}} {
		got := p.inputs[i]
		if got.Name != want.Name || got.Title != want.Title || got.ContentType != want.ContentType || got.Size != 1 {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
}

// waitFor polls until the parser reads n documents at once.
func (p *parser) waitFor(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, func() error {
		if got := p.running(); got != n {
			return fmt.Errorf("%d documents are being read, want %d", got, n)
		}
		return nil
	})
}

func TestDocumentsOverTheBudgetAreParsedAlone(t *testing.T) {
	l := newLab(t, nil)
	big := strings.Repeat("x", 5000)
	bodies := make([][]byte, 4)
	for i, text := range []string{big, "small", "small too", big + "y"} {
		bodies[i], _ = l.parseWork("docs", `{"docId":"`+string(rune('a'+i))+`","text":"`+text+`"}`)
	}
	p := &parser{release: make(chan struct{})}
	h := stage.New(l.store, &publisher{}, p, nil, 4, 1000)
	errs := make(chan error, 4)
	run := func(body []byte) {
		go func() {
			_, err := h.Handle(context.WithoutCancel(t.Context()), body)
			errs <- err
		}()
	}
	run(bodies[0])
	p.waitFor(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.Handle(ctx, bodies[3]); !errors.Is(err, context.DeadlineExceeded) || p.running() != 1 {
		t.Errorf("beside a large one: got %v with %d being read, want it to wait", err, p.running())
	}
	p.release <- struct{}{}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	run(bodies[1])
	run(bodies[2])
	p.waitFor(t, 2) // small ones go together
	close(p.release)
	run(bodies[3])
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestPermanentErrorsOfParsingNameAField(t *testing.T) {
	l := newLab(t, nil)
	h := stage.New(l.store, &publisher{}, readers(t), nil, 4, 1<<20)
	for _, c := range []struct {
		body, field string
		code        messages.Code
	}{
		{`{"docId":"a","text":""}`, "text", messages.CodeEmptyDocument},
		{`{"docId":"b","contentType":"image/png","text":"x"}`, "contentType", messages.CodeUnsupportedMediaType},
	} {
		body, w := l.parseWork("docs", c.body)
		_, err := h.Handle(t.Context(), body)
		wantError(t, c.body, err, c.code, c.field)
		if got := l.stagedAs(w); len(got) != 0 {
			t.Errorf("%s: staged %q", c.body, got)
		}
	}
	for body, field := range map[string]string{`{"docKey":`: "body", `{}`: "tenant", `[1]`: "body"} {
		_, err := h.Handle(t.Context(), []byte(body))
		wantError(t, body, err, messages.CodeValidation, field)
	}
}

func TestParsingThatComesTooLateIsStale(t *testing.T) {
	l := newLab(t, nil)
	p := &parser{}
	h := stage.New(l.store, &publisher{}, p, nil, 4, 1<<20)
	old, _ := l.parseWork("docs", `{"docId":"d","text":"old"}`)
	newer, _ := l.parseWork("docs", `{"docId":"d","text":"new"}`)
	if _, err := h.Handle(t.Context(), old); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("overtaken: got %v, want ErrStale", err)
	}
	if _, err := l.intake.Delete(t.Context(), l.from(`{"docId":"d"}`, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), newer); !errors.Is(err, pgstore.ErrStale) {
		t.Errorf("deleted: got %v, want ErrStale", err)
	}
	if p.calls != 0 || l.count("SELECT count(*) FROM staged_chunks") != 0 {
		t.Errorf("it was read %d times", p.calls)
	}
}

func TestAReparseHasIDsOfItsOwn(t *testing.T) {
	l := newLab(t, nil)
	h := stage.New(l.store, &publisher{}, readers(t), nil, 4, 1<<20)
	body, w := l.parseWork("docs", `{"docId":"d","text":"words"}`)
	first := handle(t, h, body)
	if _, err := l.pool.Exec(t.Context(), `DELETE FROM staged_chunks`); err != nil {
		t.Fatal(err)
	}
	run, err := l.store.ResetStaging(t.Context(), w.Ref)
	if err != nil {
		t.Fatal(err)
	}
	w.Run, w.SubmitID, w.Source = run, "", ""
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	second := handle(t, h, data)
	if second[0].ID == first[0].ID || second[0].ID != w.MsgID(messages.StageEmbed, 0) {
		t.Errorf("got %v after %v, want ids of run 1", names(second), names(first))
	}
	late := handle(t, h, body) // the first message, delivered again
	if !slices.Equal(names(late), names(second)) {
		t.Errorf("an older run: got %v, want %v", names(late), names(second))
	}
}
