package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/pdf"
)

// refused starts the report of a worker that could not begin; that is not the document's fault.
const refused = "worker cannot start: "

// Main takes the process over when it was started as a worker, and never returns then. Otherwise it
// does nothing.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Command {
		return
	}
	if err := serveParent(); err != nil {
		fmt.Fprintln(os.Stderr, refused+err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func serveParent() error {
	in, err := newPipe(syscall.Stdin, "stdin")
	if err != nil {
		return err
	}
	out, err := newPipe(syscall.Stdout, "stdout")
	if err != nil {
		return err
	}
	s := &server{in: bufio.NewReaderSize(in, pipeBytes), out: bufio.NewWriterSize(out, pipeBytes)}
	return s.run()
}

// server is the child's side.
type server struct {
	in      *bufio.Reader
	out     *bufio.Writer
	docs    int
	missing []string
	limits  parse.Limits
	small   []byte    // for documents of at most lightBytes, one after the other
	told    time.Time // when progress was, or the document came
	peak    int64     // see end
}

const maxRequestBytes = 1 << 20

func (s *server) run() error {
	const stack = 64 << 20 // an endless recursion then ends in under a second
	debug.SetMaxStack(stack)
	for {
		var req request
		room := int64(maxRequestBytes)
		if err := readMessage(s.in, &req, maxRequestBytes, &room); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.prepare(req); err != nil {
			return err
		}
		again, err := s.serve(req)
		if err != nil || !again {
			return err
		}
	}
}

// prepare sets the limits before a byte of the document is read.
func (s *server) prepare(req request) (err error) {
	if req.Op == opWarm { // reads no document, and writes the cache
		return nil
	}
	if s.docs > 0 && req.Limits == s.limits && req.Size <= lightBytes {
		return nil // those set for the first document hold: small texts take no more
	}
	s.threads(req.Size)
	s.limits = req.Limits
	debug.SetMemoryLimit(req.Limits.Memory/10*7 + req.Size)
	s.missing, err = limitSelf(req.Limits, req.Size)
	return err
}

// threads has one do for small texts: more would only wake each other.
func (s *server) threads(size int64) {
	if size <= lightBytes {
		runtime.GOMAXPROCS(1)
	} else if s.docs > 0 { // which were small
		runtime.SetDefaultGOMAXPROCS()
	}
}

func (s *server) serve(req request) (again bool, err error) {
	s.docs++
	s.told = time.Now()
	data, err := s.content(req.Size)
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	engine := &parse.PDFEngine{CacheDir: req.CacheDir, Light: req.Light, Loading: s.progress}
	switch req.Op {
	case opParse:
		return s.parse(req, data, engine)
	case opUnlock:
		return false, s.unlock(req, data, engine)
	case opWarm:
		return false, s.warm(engine, req.CacheDir)
	}
	return false, fmt.Errorf("unknown operation %q", req.Op)
}

func (s *server) content(size int64) (data []byte, err error) {
	if size <= lightBytes {
		s.small = slices.Grow(s.small[:0], int(size))[:size]
		data = s.small
	} else {
		data = make([]byte, size)
	}
	_, err = io.ReadFull(s.in, data)
	return data, err
}

// warm fills the cache; of several at once the first does.
func (s *server) warm(engine *parse.PDFEngine, dir string) error {
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("lock cache: %w", err)
	}
	defer unlock()
	if err := engine.Load(context.Background()); err != nil {
		return err
	}
	return s.last(end{})
}

// parse reads a document and sends it, or why it cannot be read.
func (s *server) parse(req request, data []byte, engine *parse.PDFEngine) (again bool, err error) {
	p := parse.Parser{Limits: req.Limits, Password: req.Password, PDF: engine, Progress: s.progress}
	if req.Recognise {
		p.Recognise = s.recognise
	}
	doc, err := guarded(p, parse.Input{Data: data, ContentType: req.ContentType, Name: req.Name, Title: req.Title})
	if err != nil {
		return false, s.fail(err)
	}
	if err := s.document(doc); err != nil {
		return false, err
	}
	reusable := s.docs < maxDocs && len(data) <= lightBytes && doc.Light()
	return reusable, s.last(s.end(doc, reusable))
}

// maxDocs is how many small texts, of at most lightBytes, one process reads.
const (
	maxDocs    = 500
	lightBytes = 64 << 10
)

// guarded parses; a panic of a reader is damage that nobody thought of.
func guarded(p parse.Parser, in parse.Input) (doc parse.Document, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = messages.Errorf(messages.CodeDamagedDocument, "the document broke its reader")
		}
	}()
	return p.Parse(context.Background(), in)
}

// fail tells why a document cannot be read. What is no fault of the document ends the process.
func (s *server) fail(err error) error {
	document, ok := messages.AsError(err)
	if !ok {
		return err
	}
	if err := s.send(frame{Kind: frameFail, Fail: *document}); err != nil {
		return err
	}
	return s.last(s.end(parse.Document{}, false))
}

// end tells how much memory the process held, but looks only now and then while it reads small texts.
func (s *server) end(doc parse.Document, reusable bool) end {
	const often = 32
	if !reusable || s.docs%often == 1 {
		s.peak = peak()
	}
	return end{
		Title: doc.Title, Warnings: doc.Warnings, Pages: doc.Pages, Format: doc.Format, Charset: doc.Charset,
		Engine: doc.Engine, Missing: s.missing, PeakBytes: s.peak, Reusable: reusable,
	}
}

// recognise has the parent read an image.
func (s *server) recognise(_ context.Context, image []byte) (string, error) {
	if err := s.send(frame{Kind: frameImage, Data: image}); err != nil {
		return "", err
	}
	if err := s.out.Flush(); err != nil {
		return "", err
	}
	var a answer
	const most = 64 << 20
	room := int64(most)
	if err := readMessage(s.in, &a, most, &room); err != nil {
		return "", err
	}
	if a.Failed {
		return "", &a.Fail
	}
	return a.Text, nil
}

// unlock sends the document without its protection.
func (s *server) unlock(req request, data []byte, engine *parse.PDFEngine) error {
	var out bytes.Buffer
	err := guardedUnlock(engine, data, req.Password, &out)
	if err != nil {
		return s.fail(err)
	}
	const part = 256 << 10
	for rest := out.Bytes(); len(rest) > 0; {
		n := min(len(rest), part)
		if err := s.send(frame{Kind: frameData, Data: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return s.last(s.end(parse.Document{}, false))
}

func guardedUnlock(engine *parse.PDFEngine, data []byte, password string, out io.Writer) (err error) {
	defer func() {
		if recover() != nil {
			err = messages.Errorf(messages.CodeDamagedDocument, "the document broke its reader")
		}
	}()
	err = parse.Unlock(context.Background(), engine, data, password, out)
	if errors.Is(err, pdf.ErrBroken) {
		document, _ := messages.AsError(err)
		return document
	}
	return err
}
