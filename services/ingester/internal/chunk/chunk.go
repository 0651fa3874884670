package chunk

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// MaxTextBytes is the most text a chunk has, whatever the strategy.
const MaxTextBytes = 64 << 10

// Defaults and bounds of a configuration, in tokens.
const (
	DefaultSize    = messages.DefaultChunkSize
	DefaultOverlap = messages.DefaultChunkOverlap
	MinSize        = messages.MinChunkSize
	MaxSize        = messages.MaxChunkSize
)

// Names of the strategies.
const (
	Tokens = messages.ChunkTokens
	Whole  = messages.ChunkWhole
)

// Version names the algorithm; it changes when the same input gives other chunks.
const Version = "c2"

// Chunk is one piece of a document.
type Chunk struct {
	Ordinal     int          // from 0
	Start       int          // bytes into the document's text; before CoreStart when there is overlap
	End         int          // exclusive; what lies between it and the next core is white space
	CoreStart   int          // cores partition the text: this one ends where the next begins
	Text        string       // exactly text[Start:End], at most MaxTextBytes
	HeadingPath []string     // of the block at CoreStart, or of the first one behind leading headings; outermost first
	Place       parse.Place  // of the whole chunk; with strategy whole what all its blocks share
	PageFrom    int          // physical, from 1; 0 without pages
	PageTo      int          // of the last character
	LineFrom    int          // in the source, or row of the sheet, from 1; 0 when unknown
	LineTo      int          // of the last character; never less than LineFrom
	Kinds       []parse.Kind // of its blocks, each once, in the order of the text; at least one
	Tokens      int          // of Input, by the configured counter
	Context     string       // headings not in Text, repeated table header or fence language; may be empty
}

// Input is what a model gets to see: the context, a line end, the text. The document's title and the
// prefix of the embedding space are the caller's to put in front.
func (c Chunk) Input() string { return join(c.Context, c.Text) }

func join(context, text string) string {
	if context == "" {
		return text
	}
	return context + "\n" + text
}

// Config says how to cut. The zero value means the defaults.
type Config struct {
	Strategy  string  // empty: tokens
	Size      int     // tokens of a chunk with its context; 0: DefaultSize; not used by whole
	Overlap   *int    // tokens repeated from the chunk before, counted in Size; nil: DefaultOverlap, at most a tenth of Size
	Counter   Counter // nil: Estimator
	MaxTokens int     // the embedding model's input limit; 0: not known
}

func (c Config) withDefaults() Config {
	if c.Strategy == "" {
		c.Strategy = Tokens
	}
	if c.Size == 0 {
		c.Size = DefaultSize
	}
	if c.Overlap == nil {
		overlap := min(DefaultOverlap, c.Size/10)
		c.Overlap = &overlap
	}
	if c.Counter == nil {
		c.Counter = Estimator{}
	}
	return c
}

// Validate reports the first bad setting as a *messages.Error that names the field. Nothing is
// repaired in silence.
func (c Config) Validate() error {
	const field = "chunkingConfiguration."
	if _, ok := strategies()[c.Strategy]; !ok && c.Strategy != "" {
		return messages.Invalid(field+"strategy", fmt.Sprintf("%q is not one of %s", c.Strategy, strings.Join(Strategies(), ", ")))
	}
	most := MaxSize
	if c.MaxTokens > 0 {
		most = min(most, c.MaxTokens)
	}
	if c.Size != 0 && (c.Size < MinSize || c.Size > most) {
		return messages.Invalid(field+"size", fmt.Sprintf("%d is not between %d and %d tokens", c.Size, MinSize, most))
	}
	full := c.withDefaults()
	if *full.Overlap < 0 || *full.Overlap > full.Size/2 {
		return messages.Invalid(field+"overlap", fmt.Sprintf("%d is not between 0 and half the size (%d)", *full.Overlap, full.Size/2))
	}
	return nil
}

// strategy cuts a checked document under a complete configuration.
type strategy func(doc parse.Document, c Config) (chunks []Chunk, warnings []string)

// strategies is the table of strategies by name.
func strategies() map[string]strategy {
	return map[string]strategy{
		Tokens: byTokens,
		Whole:  asWhole,
	}
}

// Strategies lists the names, the default one first.
func Strategies() []string { return []string{Tokens, Whole} }

// Split cuts a document. Warnings are for people. A document without text has no chunks. The error is
// a bad setting (*messages.Error) or, a mistake in the program, blocks that do not partition the text.
func Split(doc parse.Document, c Config) (chunks []Chunk, warnings []string, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	if doc.Text == "" {
		return nil, nil, nil
	}
	if len(doc.Blocks) == 0 {
		doc.Blocks = []parse.Block{{Kind: parse.KindParagraph, End: len(doc.Text)}}
	}
	if err := partitioned(doc); err != nil {
		return nil, nil, err
	}
	c = c.withDefaults()
	chunks, warnings = strategies()[c.Strategy](doc, c)
	return chunks, warnings, nil
}

func partitioned(doc parse.Document) error {
	at := 0
	for i, b := range doc.Blocks {
		if b.Start != at || b.End < b.Start || b.End > len(doc.Text) {
			return fmt.Errorf("split document: block %d covers [%d,%d), want it to start at %d", i, b.Start, b.End, at)
		}
		at = b.End
	}
	if at != len(doc.Text) {
		return fmt.Errorf("split document: blocks end at %d of %d bytes", at, len(doc.Text))
	}
	return nil
}

func byTokens(doc parse.Document, c Config) ([]Chunk, []string) {
	p := &packer{doc: doc, counter: c.Counter, size: c.Size, overlap: *c.Overlap, bytes: MaxTextBytes, sections: true}
	return p.run(), nil
}
