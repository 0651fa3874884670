// Package stage turns a stored version into staged chunks: the core of the parse stage.
package stage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/chunk"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// Store is what the stage needs of the database.
type Store interface {
	BeginParse(ctx context.Context, ref messages.Ref) (pgstore.Version, error)
	OpenBlob(ctx context.Context, kbID int64, b pgstore.Blob) io.Reader
	Stage(ctx context.Context, st pgstore.Staging) (reused int, err error)
	EmbedWork(ctx context.Context, ref messages.Ref) ([]messages.EmbedWork, error)
	BuiltIn(ctx context.Context, ref messages.Ref, generation int64) (pgstore.Built, error)
}

// Publisher stores messages at once.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Parser reads documents.
type Parser interface {
	Parse(ctx context.Context, in worker.Input) (parse.Document, error)
}

// Splitter takes the lines of a file in.
type Splitter interface {
	Split(ctx context.Context, ref messages.Ref, blob pgstore.Blob) error
}

// Handler handles parse work. Safe for concurrent use.
type Handler struct {
	store   Store
	publish Publisher
	parser  Parser
	split   Splitter
	memory  *semaphore.Weighted // bytes of content being parsed
	budget  int64
	slots   *semaphore.Weighted // documents being parsed
	now     func() time.Time
}

// contentCost is how many bytes of memory a byte of content may take while its text is chunked. Contents of
// more than largestText bytes cost no more than that: they are streamed, and the text of one is bounded.
const (
	contentCost = 4
	largestText = 32 << 20
)

// smallContent is read at once; larger contents are streamed to the process that reads them.
const smallContent = 1 << 20

// New returns a handler that parses so many contents at once, while they fit in about memory bytes together; a
// larger one is parsed alone. Those it handles beyond that wait for the database or for their turn.
func New(store Store, publish Publisher, parser Parser, split Splitter, parallel int, memory int64) *Handler {
	return &Handler{
		store: store, publish: publish, parser: parser, split: split, memory: semaphore.NewWeighted(memory), budget: memory,
		slots: semaphore.NewWeighted(int64(parallel)), now: time.Now,
	}
}

// Handle parses, chunks, analyses and stages a version, and returns the work that follows: messages to
// embed what is not known, or to index where nothing is left to embed. A version that is split has its lines taken in
// instead, and nothing follows of itself. Run again after a crash at any
// line it returns the same messages.
func (h *Handler) Handle(ctx context.Context, body []byte) ([]bus.Message, error) {
	var w messages.ParseWork
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, messages.Invalid("body", "is not parse work: "+err.Error())
	}
	if err := w.Ref.Validate(); err != nil {
		return nil, err
	}
	v, err := h.store.BeginParse(ctx, w.Ref)
	if err != nil {
		return nil, err
	}
	ref := w.Ref
	ref.Run, ref.Generation = max(w.Ref.Run, v.Run), v.Generation.ID
	g, ctx := guard.WithContext(ctx)
	if v.Begun && w.Source != "" {
		g.Go(func() error { return h.announce(ctx, ref, w) })
	}
	defer g.Wait() //nolint:errcheck // of a panic, which is for whoever called: the error is looked at below
	out, err := h.work(ctx, ref, v)
	if err != nil {
		g.Go(func() error { return err }) // ends the other, unless that failed first
	}
	return out, g.Wait()
}

// work does what is left to do with a version, and returns the messages that follow.
func (h *Handler) work(ctx context.Context, ref messages.Ref, v pgstore.Version) ([]bus.Message, error) {
	switch {
	case v.Split:
		return nil, inField(h.split.Split(ctx, ref, v.Blob))
	case v.Staged:
		return h.follow(ctx, ref, nil, nil)
	}
	return h.build(ctx, ref, v)
}

// announce tells that a version is being indexed, while that goes on.
func (h *Handler) announce(ctx context.Context, ref messages.Ref, w messages.ParseWork) error {
	msg, err := bus.Event(messages.Event{
		Tenant: ref.Tenant, KB: ref.KB, KBID: ref.KBID, Subspace: ref.Subspace, DocID: ref.DocID, Version: ref.Version,
		Status: messages.StatusIndexing, SubmitID: w.SubmitID, At: h.now().UTC(),
	}, w.Source)
	if err != nil {
		return err
	}
	_, err = h.publish.PublishAck(ctx, msg)
	return err
}

func (h *Handler) build(ctx context.Context, ref messages.Ref, v pgstore.Version) ([]bus.Message, error) {
	cost := min(contentCost*min(v.Blob.SizeBytes, largestText)+1, h.budget)
	if err := h.memory.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("wait for memory: %w", err)
	}
	defer h.memory.Release(cost)
	st, err := h.chunks(ctx, ref, v)
	if err != nil {
		return nil, err
	}
	reused, err := h.store.Stage(ctx, st)
	if err != nil {
		return nil, err
	}
	if reused > 0 || v.Generation.Space == nil {
		return h.follow(ctx, ref, nil, nil)
	}
	return h.follow(ctx, ref, v.Generation.Space, st.Chunks)
}

// chunks parses, chunks and analyses a version when its turn has come.
func (h *Handler) chunks(ctx context.Context, ref messages.Ref, v pgstore.Version) (pgstore.Staging, error) {
	if err := h.slots.Acquire(ctx, 1); err != nil {
		return pgstore.Staging{}, fmt.Errorf("wait to be parsed: %w", err)
	}
	defer h.slots.Release(1)
	if st, ok, err := h.again(ctx, ref, v); ok || err != nil {
		return st, err
	}
	doc, err := h.read(ctx, ref, v)
	if err != nil {
		return pgstore.Staging{}, err
	}
	return stagingOf(ref, v, doc)
}

func (h *Handler) read(ctx context.Context, ref messages.Ref, v pgstore.Version) (parse.Document, error) {
	name := v.OSSKey
	if path.Ext(name) == "" {
		name = ref.DocID
	}
	in := worker.Input{Size: v.Blob.SizeBytes, ContentType: v.ContentType, Name: name, Title: v.Title}
	in.Open = func(ctx context.Context) io.Reader { return h.store.OpenBlob(ctx, ref.KBID, v.Blob) }
	if in.Size <= smallContent {
		data := v.Content
		if data == nil {
			data = make([]byte, in.Size)
			if _, err := io.ReadFull(in.Open(ctx), data); err != nil {
				return parse.Document{}, fmt.Errorf("read content of %s: %w", ref.DocID, err)
			}
		}
		in.Open = func(context.Context) io.Reader { return bytes.NewReader(data) }
	}
	doc, err := h.parser.Parse(ctx, in)
	return doc, inField(err)
}

// inField names the field of the submit that an error of reading is about: readers know contents only.
func inField(err error) error {
	e, ok := messages.AsError(err)
	if !ok || e.Field != "" {
		return err
	}
	named := *e
	named.Field = "text"
	if e.Code == messages.CodeUnsupportedMediaType {
		named.Field = "contentType"
	}
	return &named
}

// follow returns the work after staging. space and chunks are those just staged when no vector of them
// is known; without them the database is asked.
func (h *Handler) follow(ctx context.Context, ref messages.Ref, space *messages.Space, chunks []pgstore.StagedChunk) ([]bus.Message, error) {
	works, err := h.embedWork(ctx, ref, space, chunks)
	if err != nil {
		return nil, err
	}
	out := make([]bus.Message, 0, max(len(works), 1))
	for _, w := range works {
		msg, err := bus.Work(messages.StageEmbed, messages.TypeEmbed, ref, w.Part, w)
		if err != nil {
			return nil, err
		}
		out = append(out, msg)
	}
	if len(out) > 0 {
		return out, nil
	}
	msg, err := bus.Work(messages.StageIndex, messages.TypeIndex, ref, 0, messages.IndexWork{Ref: ref, Parts: 1})
	return append(out, msg), err
}

func (h *Handler) embedWork(ctx context.Context, ref messages.Ref, space *messages.Space, chunks []pgstore.StagedChunk) ([]messages.EmbedWork, error) {
	if space == nil {
		return h.store.EmbedWork(ctx, ref)
	}
	texts := make([]messages.EmbedChunk, len(chunks))
	for i := range chunks {
		c := &chunks[i]
		texts[i] = messages.EmbedChunk{Ordinal: c.Ordinal, Hash: c.Hash[:], Text: space.PassageText(c.Context, c.Content)}
	}
	return messages.PackEmbed(ref, *space, texts, func(int) bool { return false }), nil
}

// stagingOf chunks and analyses a document.
func stagingOf(ref messages.Ref, v pgstore.Version, doc parse.Document) (pgstore.Staging, error) {
	st := pgstore.Staging{Ref: ref, Title: storable(doc.Title), Space: v.Generation.Space, Warnings: doc.Warnings}
	analyzer, err := lexical.Lookup(v.Generation.Analyzer)
	if err != nil {
		return st, err
	}
	title := contextTitle(doc.Title)
	cfg, err := chunkConfig(v.Generation, title)
	if err != nil {
		return st, err
	}
	chunks, warnings, err := chunk.Split(doc, cfg)
	if err != nil {
		return st, err
	}
	if len(chunks) == 0 { // a title alone is searchable too
		chunks = []chunk.Chunk{{}}
	}
	st.Warnings = append(st.Warnings, warnings...)
	truncated := 0
	st.Chunks = make([]pgstore.StagedChunk, len(chunks))
	r := stager{analyzer: analyzer, title: title}
	if v.Generation.Space != nil {
		r.space = *v.Generation.Space
	}
	for i, c := range chunks {
		var cut bool
		st.Chunks[i], cut = r.staged(c)
		if cut {
			truncated++
		}
	}
	if truncated > 0 {
		st.Warnings = append(st.Warnings, fmt.Sprintf("%d chunks have more terms than the full-text index holds; the rest of their terms is not searchable", truncated))
	}
	return st, nil
}

// stager makes the chunks of a document ready to be staged, one after the other.
type stager struct {
	analyzer *lexical.Analyzer
	space    messages.Space
	title    string
	lex      lexical.Document // used again
}

func (r *stager) staged(c chunk.Chunk) (s pgstore.StagedChunk, truncated bool) {
	text := joinContext(r.title, c.Context)
	r.analyzer.Fill(&r.lex, text, c.Text)
	passage := r.space.PassageText(text, c.Text)
	return pgstore.StagedChunk{
		Ordinal: c.Ordinal, PageFrom: c.PageFrom, PageTo: c.PageTo, Tokens: c.Tokens, HeadingPath: c.HeadingPath,
		Context: text, Content: c.Text, Hash: sha256.Sum256([]byte(passage)), Origin: originOf(c), Lex: pgstore.NewTSVector(r.lex), LexLen: r.lex.Length,
	}, r.lex.Truncated
}

func originOf(c chunk.Chunk) messages.Origin {
	o := messages.Origin{
		Slide: c.Place.Slide, Sheet: storable(c.Place.Sheet), Chapter: storable(c.Place.Chapter), Attachment: storable(c.Place.Attachment),
		LineFrom: c.LineFrom, LineTo: c.LineTo,
	}
	for _, k := range c.Kinds {
		o.Kinds = append(o.Kinds, string(k))
	}
	return o
}

// joinContext puts the document's title before the chunk's own context, unless that begins with it.
func joinContext(title, context string) string {
	switch {
	case title == "" || context == title || strings.HasPrefix(context, title+" ") || strings.HasPrefix(context, title+"\n"):
		return context
	case context == "":
		return title
	}
	return title + "\n" + context
}

// maxTitleBytes bounds the part of a title that every chunk repeats.
const maxTitleBytes = 512

func contextTitle(title string) string {
	title = storable(title)
	if len(title) <= maxTitleBytes {
		return title
	}
	cut := maxTitleBytes
	for cut > 0 && !utf8.RuneStart(title[cut]) {
		cut--
	}
	return title[:cut]
}

// storable is text as Postgres takes it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "")
}

// chunkConfig leaves room for the title, which every chunk carries.
func chunkConfig(g pgstore.Generation, title string) (chunk.Config, error) {
	cfg := chunk.Config{Strategy: g.Chunking.Strategy, Size: g.Chunking.Size, Overlap: g.Chunking.Overlap}
	if g.Space != nil {
		counter, err := chunk.CounterFor(g.Space.Model)
		if err != nil {
			return cfg, err
		}
		cfg.Counter = counter
	}
	if cfg.Strategy != chunk.Tokens || title == "" {
		return cfg, nil
	}
	if cfg.Counter == nil {
		cfg.Counter = chunk.Estimator{}
	}
	room := cfg.Size - min(cfg.Counter.Count(title), cfg.Size/4)
	cfg.Size = max(room, chunk.MinSize)
	if cfg.Overlap != nil {
		overlap := min(*cfg.Overlap, cfg.Size/2)
		cfg.Overlap = &overlap
	}
	return cfg, nil
}
