package worker

import (
	"slices"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// Command is the hidden argument that makes a binary a worker.
const Command = "__parse"

// What a worker is asked to do.
const (
	opParse  = "parse"
	opUnlock = "unlock" // give the document without its protection
	opWarm   = "warm"   // fill the cache of the PDF engine
)

// request is what the parent sends first; Size bytes of the document follow.
type request struct {
	Op          string
	Size        int64
	ContentType string
	Name        string
	Title       string
	Password    string
	Limits      parse.Limits
	CacheDir    string
	Light       bool
	Recognise   bool // images may be sent back, one at a time, to be read
}

func (r *request) fields(w *wire) {
	w.text(&r.Op)
	w.number(&r.Size)
	for _, v := range []*string{&r.ContentType, &r.Name, &r.Title, &r.Password, &r.CacheDir} {
		w.text(v)
	}
	w.flag(&r.Light)
	w.flag(&r.Recognise)
	l := &r.Limits
	for _, v := range []*int{
		&l.FileBytes, &l.TextFile, &l.MarkupFile, &l.TextBytes, &l.Depth, &l.ZipEntries, &l.ZipPart, &l.ZipTotal, &l.ZipRatio,
		&l.Pages, &l.OCRPages, &l.RecordBytes, &l.TableColumns,
	} {
		w.int(v)
	}
	w.number((*int64)(&l.Wall))
	w.number((*int64)(&l.Stall))
	w.number(&l.Memory)
}

// What a frame holds.
const (
	frameProgress = iota + 1
	frameText
	frameBlocks
	frameImage // the child waits for an answer
	frameData  // of opUnlock
	frameFail
	frameEnd
)

// frame is what the child sends. Which of its fields are there is up to Kind.
type frame struct {
	Kind   int
	Text   string
	Blocks []parse.Block
	Data   []byte // of an image too; holds until the next frame is read
	Fail   messages.Error
	End    end
}

func (f *frame) fields(w *wire) {
	w.int(&f.Kind)
	switch f.Kind {
	case frameProgress:
	case frameText:
		w.text(&f.Text)
	case frameBlocks:
		var path []string // of the block before
		list(w, &f.Blocks, func(w *wire, b *parse.Block) { block(w, b, &path) })
	case frameImage, frameData:
		w.bytes(&f.Data)
	case frameFail:
		failure(w, &f.Fail)
	case frameEnd:
		f.End.fields(w)
	default:
		w.fail(errBroken)
	}
}

// kinds of blocks, by their numbers in messages.
var kinds = []parse.Kind{parse.KindHeading, parse.KindParagraph, parse.KindList, parse.KindTable, parse.KindCode}

func block(w *wire, b *parse.Block, path *[]string) {
	kind := slices.Index(kinds, b.Kind)
	w.int(&kind)
	if kind < 0 || kind >= len(kinds) {
		w.fail(errBroken)
		return
	}
	b.Kind = kinds[kind]
	numbers := [...]*int{&b.Level, &b.Start, &b.End, &b.Page, &b.Line, &b.LineEnd, &b.HeaderEnd, &b.Slide}
	texts := [...]*string{&b.Sheet, &b.Chapter, &b.Attachment, &b.Header, &b.Lang}
	there := 0 // a bit for each that is not empty: most are
	for i, v := range numbers {
		if *v != 0 {
			there |= 1 << i
		}
	}
	for i, v := range texts {
		if *v != "" {
			there |= 1 << (len(numbers) + i)
		}
	}
	w.int(&there)
	for i, v := range numbers {
		if there>>i&1 != 0 {
			w.int(v)
		}
	}
	for i, v := range texts {
		if there>>(len(numbers)+i)&1 != 0 {
			w.text(v)
		}
	}
	headings(w, &b.HeadingPath, path)
}

// headings writes a path only where it is another than that of the block before.
func headings(w *wire, v, last *[]string) {
	const none, same, other = 0, 1, 2
	which := other
	if len(*v) == 0 {
		which = none
	} else if len(*v) == len(*last) && &(*v)[0] == &(*last)[0] {
		which = same
	}
	w.int(&which)
	switch which {
	case none:
	case same:
		*v = *last
	case other:
		list(w, v, (*wire).text)
		*last = *v
	default:
		w.fail(errBroken)
	}
}

// end closes a document; after a failure too.
type end struct {
	Title     string
	Warnings  []string
	Pages     int
	Format    string
	Charset   string
	Engine    string
	Missing   []string // limits that this system does not have
	PeakBytes int64    // most memory the process held, as far as it looked
	Reusable  bool     // the process can take another document
}

func (e *end) fields(w *wire) {
	for _, v := range []*string{&e.Title, &e.Format, &e.Charset, &e.Engine} {
		w.text(v)
	}
	list(w, &e.Warnings, (*wire).text)
	list(w, &e.Missing, (*wire).text)
	w.int(&e.Pages)
	w.number(&e.PeakBytes)
	w.flag(&e.Reusable)
}

// answer is the text of an image, or why there is none.
type answer struct {
	Text   string
	Failed bool // the document's fault, see Fail
	Fail   messages.Error
}

func (a *answer) fields(w *wire) {
	w.text(&a.Text)
	w.flag(&a.Failed)
	failure(w, &a.Fail)
}

func failure(w *wire, e *messages.Error) {
	for _, v := range []*string{(*string)(&e.Code), &e.Message, &e.Field, &e.Stage} {
		w.text(v)
	}
	w.int(&e.Limit)
}
