package publish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Stdin is the argument that stands for standard input.
const Stdin = "-"

// mediaTypes are the types of the extensions that folders are searched for.
var mediaTypes = [...]struct{ ext, media string }{
	{".pdf", "application/pdf"},
	{".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{".odt", "application/vnd.oasis.opendocument.text"},
	{".ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{".odp", "application/vnd.oasis.opendocument.presentation"},
	{".epub", "application/epub+zip"},
	{".rtf", "application/rtf"},
	{".eml", "message/rfc822"},
	{".mht", "multipart/related"},
	{".mhtml", "multipart/related"},
	{".ipynb", "application/x-ipynb+json"},
	{".xml", "application/xml"},
	{".yaml", "application/yaml"},
	{".yml", "application/yaml"},
	{".html", "text/html"},
	{".htm", "text/html"},
	{".xhtml", "application/xhtml+xml"},
	{".md", "text/markdown"},
	{".markdown", "text/markdown"},
	{".mdown", "text/markdown"},
	{".mkd", "text/markdown"},
	{".jsonl", "application/jsonl"},
	{".ndjson", "application/x-ndjson"},
	{".json", "application/json"},
	{".csv", "text/csv"},
	{".tsv", "text/tab-separated-values"},
	{".tab", "text/tab-separated-values"},
	{".txt", "text/plain"},
	{".text", "text/plain"},
	{".log", "text/x-log"},
}

// Extensions lists the file name extensions that folders are searched for.
func Extensions() []string {
	out := make([]string, len(mediaTypes))
	for i, m := range mediaTypes {
		out[i] = m.ext
	}
	return out
}

// MediaType returns the type of a file name, empty when its extension is not known.
func MediaType(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	for _, m := range mediaTypes {
		if m.ext == ext {
			return m.media
		}
	}
	return ""
}

// sniff returns the type of contents with a sure sign, empty for all others: the services look again.
func sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return "application/pdf"
	case bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("<!doctype html")):
		return "text/html"
	}
	return ""
}

// Options say what Find makes of files. The zero value publishes each file under its path.
type Options struct {
	// JSONL reads every file as submits, one JSON object a line.
	JSONL bool
	// Subspace, Metadata and ContentType go to every document that has none of its own.
	Subspace    string
	Metadata    []byte
	ContentType string
	// DocID and Title are for a single document.
	DocID, Title string
	// Stdin is read for the argument "-".
	Stdin io.Reader
	// Base is the folder that document ids are relative to; empty is the working directory. A file outside
	// it is named relative to the argument that led to it.
	Base string
	// MaxLineBytes is the longest line of JSONL; zero is what the largest document needs in base64.
	MaxLineBytes int
}

// Find sends the documents of the arguments (files, folders, "-") to out, in order, and closes it. Files
// that folders hold with other extensions, hidden ones and links are passed over. What goes wrong with one
// document is its item's Err; the returned error is that of an argument, or the end of ctx.
func Find(ctx context.Context, args []string, o Options, out chan<- Item) error {
	defer close(out)
	if o.MaxLineBytes <= 0 {
		o.MaxLineBytes = maxLineBytes
	}
	f := finder{ctx: ctx, o: o, out: out, seen: map[string]string{}}
	for _, arg := range args {
		if err := f.argument(arg); err != nil {
			return err
		}
	}
	return nil
}

type finder struct {
	ctx  context.Context
	o    Options
	out  chan<- Item
	seen map[string]string // key of a document to the name it had first
}

func (f *finder) argument(arg string) error {
	if arg == Stdin {
		return f.stdin()
	}
	info, err := os.Stat(arg)
	if err != nil {
		return fmt.Errorf("find documents: %w", err)
	}
	if !info.IsDir() {
		return f.file(arg, filepath.Dir(arg))
	}
	root := arg + string(filepath.Separator) // the folder, also where arg is a link to it
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("find documents: %w", err)
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !d.Type().IsRegular() || !f.wanted(path):
			return nil
		}
		return f.file(path, arg)
	})
}

func (f *finder) wanted(path string) bool {
	if f.o.JSONL {
		return slices.ContainsFunc([]string{".jsonl", ".ndjson", ".jsonl.gz"}, func(ext string) bool { return strings.HasSuffix(strings.ToLower(path), ext) })
	}
	return MediaType(path) != ""
}

// file sends the document, or documents, of a file that was found under root.
func (f *finder) file(path, root string) error {
	if f.o.JSONL {
		return f.lines(path)
	}
	item := Item{Name: path, Path: path}
	item.Submit.DocID, item.Err = f.id(path, root)
	item.Submit.ContentType = MediaType(path)
	if item.Submit.ContentType == "" {
		item.Submit.ContentType = sniffFile(path)
	}
	return f.send(f.finish(item))
}

// id is the path relative to the base, or to root when it lies outside, with slashes.
func (f *finder) id(path, root string) (string, error) {
	if f.o.DocID != "" {
		return f.o.DocID, nil
	}
	base := f.o.Base
	if base == "" {
		base = "."
	}
	for _, from := range []string{base, root} {
		rel, err := relative(from, path)
		if err != nil {
			return "", err
		}
		if filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return filepath.Base(path), nil
}

func relative(from, path string) (string, error) {
	a, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", path, err)
	}
	b, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", path, err)
	}
	return filepath.Rel(a, b)
}

// sniffFile looks at the first bytes of a file. One that cannot be read has no type: publishing it says
// why.
func sniffFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	return sniff(head[:n])
}

func (f *finder) stdin() error {
	if f.o.JSONL {
		return f.read("standard input", f.o.Stdin)
	}
	data, err := io.ReadAll(io.LimitReader(f.o.Stdin, MaxDocumentBytes+1))
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	item := Item{Name: "standard input", Data: data}
	if item.Data == nil {
		item.Data = []byte{}
	}
	if len(data) > MaxDocumentBytes {
		item.Data, item.Err = []byte{}, &messages.Error{
			Code: messages.CodeDocumentTooLarge, Field: "data", Message: fmt.Sprintf("has more than %d bytes", MaxDocumentBytes),
		}
	}
	item.Submit.DocID, item.Submit.ContentType = f.o.DocID, sniff(data[:min(len(data), 512)])
	return f.send(f.finish(item))
}

// finish fills in what the options say and checks the form.
func (f *finder) finish(item Item) Item {
	s := &item.Submit
	if s.Subspace == "" {
		s.Subspace = f.o.Subspace
	}
	if s.Metadata == nil && len(f.o.Metadata) > 0 {
		s.Metadata = f.o.Metadata
	}
	if f.o.ContentType != "" {
		s.ContentType = f.o.ContentType
	}
	if s.Title == "" {
		s.Title = f.o.Title
	}
	if item.Err == nil {
		item.Err = check(item)
	}
	if item.Err == nil {
		item.Err = f.once(item)
	}
	return item
}

// check validates a submit as the services will.
func check(item Item) error {
	s := item.Submit
	if !item.whole() {
		s.Data = []byte{}
	}
	return s.Validate()
}

// once refuses the second document of an id in one run: which of them would win is chance.
func (f *finder) once(item Item) error {
	if first, again := f.seen[item.key()]; again {
		return messages.Invalid("docId", fmt.Sprintf("%q was given before, by %s", item.Submit.DocID, first))
	}
	f.seen[item.key()] = item.Name
	return nil
}

func (f *finder) send(item Item) error {
	select {
	case f.out <- item:
		return nil
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}
