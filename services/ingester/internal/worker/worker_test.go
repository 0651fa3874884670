package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/pdf/pdftest"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// pool starts a pool with the cache of the services.
func pool(t *testing.T, cfg worker.Config) *worker.Pool {
	t.Helper()
	if cfg.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			dir = os.TempDir()
		}
		cfg.CacheDir = filepath.Join(dir, "weir", "parse")
	}
	p := worker.New(cfg)
	t.Cleanup(p.Close)
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func input(data []byte) worker.Input {
	return worker.Input{Open: func(context.Context) io.Reader { return bytes.NewReader(data) }, Size: int64(len(data))}
}

func codeOf(err error) messages.Code {
	if document, ok := messages.AsError(err); ok {
		return document.Code
	}
	return ""
}

// TestHostileDocumentsEndInATypedErrorAndHarmNothing: each of these ends a process, or takes it for ever,
// with one of the engines.
func TestHostileDocumentsEndInATypedErrorAndHarmNothing(t *testing.T) {
	t.Parallel()
	p := pool(t, worker.Config{Limits: parse.Limits{Wall: 20 * time.Second, Memory: 512 << 20}})
	for name, test := range map[string]struct {
		data []byte
		code messages.Code // empty: read whole
	}{
		"object stream inside itself":  {pdftest.SelfObjectStream(), messages.CodeDamagedDocument},
		"subsection start 4e9":         {pdftest.HugeSubsection(), ""},
		"kids cycle":                   {pdftest.KidsCycle(), messages.CodeDamagedDocument},
		"content ends in a hex string": {pdftest.Pages("BT /F1 12 Tf 72 700 Td (Good) Tj <AB"), ""},
		"thirteen million operators":   {pdftest.FlateBomb(), messages.CodeParseLimit},
	} {
		doc, err := p.Parse(t.Context(), input(test.data))
		if codeOf(err) != test.code || test.code == "" && err != nil {
			t.Errorf("%s: got %q, error %v, want %q", name, doc.Text, err, test.code)
		}
		if good, err := p.Parse(t.Context(), input([]byte("A good text."))); err != nil || good.Text != "A good text.\n" {
			t.Errorf("a text behind %s: got %q, error %v", name, good.Text, err)
		}
	}
}

// TestTheLightEngineMayDie: what kills it is read by PDFium.
func TestTheLightEngineMayDie(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	engines := map[string]bool{}
	p := pool(t, worker.Config{Light: true, Observe: func(r worker.Report) {
		mu.Lock()
		defer mu.Unlock()
		engines[r.Engine] = true
	}})
	for name, data := range map[string][]byte{
		"huge subsection": bytes.Replace(pdftest.Pages("BT /F1 12 Tf 72 700 Td (Read all the same) Tj ET"), []byte("xref\n0 "), []byte("xref\n4000000000 "), 1),
		"good":            pdftest.Pages("BT /F1 12 Tf 72 700 Td (Read all the same) Tj ET"),
	} {
		doc, err := p.Parse(t.Context(), input(data))
		if err != nil || doc.Text != "Read all the same\n" {
			t.Errorf("%s: got %q, error %v", name, doc.Text, err)
		}
	}
	if !engines[parse.EnginePDFium] || !engines[parse.EngineLight] {
		t.Errorf("engines %v, want both", engines)
	}
}

// TestLimitsAreNamed checks the limits that the parent keeps.
func TestLimitsAreNamed(t *testing.T) {
	t.Parallel()
	page := "BT /F1 12 Tf 72 700 Td " + strings.Repeat("(A) Tj ", 2000) + " ET"
	many := pdftest.Pages(slices.Repeat([]string{page}, 2000)...)
	for name, test := range map[string]struct {
		limits parse.Limits
		data   []byte
		says   string
	}{
		"wall":   {parse.Limits{Wall: 300 * time.Millisecond}, many, "limit of 300ms"},
		"stall":  {parse.Limits{Stall: 200 * time.Millisecond}, pdftest.FlateBomb(), "no progress for the limit of 200ms"},
		"pages":  {parse.Limits{Pages: 50}, many, "limit of 50 pages"},
		"text":   {parse.Limits{TextBytes: 10_000}, many, "limit of 10000 bytes"},
		"memory": {parse.Limits{Memory: 64 << 20}, many, "limit of memory"},
		"file":   {parse.Limits{FileBytes: 10}, many, "limit of 10 bytes"},
	} {
		p := pool(t, worker.Config{Limits: test.limits})
		_, err := p.Parse(t.Context(), input(test.data))
		if codeOf(err) != messages.CodeParseLimit || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, test.says)
		}
	}
}

// TestADocumentComesBackAsItWasRead compares what crosses the pipe with what is read in process.
func TestADocumentComesBackAsItWasRead(t *testing.T) {
	t.Parallel()
	p := pool(t, worker.Config{})
	var files []string
	for _, pattern := range []string{"../../../../examples/*", "../parse/testdata/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if ext := filepath.Ext(file); err != nil || ext == ".pdf" || ext == ".golden" {
			continue
		}
		in := input(data)
		in.Name = file
		got, err := p.Parse(t.Context(), in)
		want, wantErr := parse.Parse(t.Context(), parse.Input{Data: data, Name: file})
		if fmt.Sprintf("%+v %v", got, err) != fmt.Sprintf("%+v %v", want, wantErr) {
			t.Errorf("%s: got\n%+v %v, want\n%+v %v", file, got, err, want, wantErr)
		}
	}
}

// TestManyAtOnce has more documents read than processes wait.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := pool(t, worker.Config{Idle: 2})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			text := fmt.Sprintf("Text number %d.\n", i)
			if doc, err := p.Parse(t.Context(), input([]byte(text))); err != nil || doc.Text != text {
				t.Errorf("got %q, error %v, want %q", doc.Text, err, text)
			}
		})
	}
	all.Wait()
}

// TestOCRReadsImagesAndPagesWithoutText has the parent read what the child sends back.
func TestOCRReadsImagesAndPagesWithoutText(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var images [][]byte
	var fail error
	p := pool(t, worker.Config{Limits: parse.Limits{OCRPages: 2}, Recognise: func(_ context.Context, image []byte) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		images = append(images, image)
		return fmt.Sprintf("Seen in image %d.\n\nBelow it.\n", len(images)), fail
	}})
	scan := pdftest.Pages("0 0 10 10 re f", "BT /F1 12 Tf 72 700 Td (A text layer) Tj ET", "1 1 20 20 re f", "2 2 20 20 re f")
	doc, err := p.Parse(t.Context(), input(scan))
	if want := "Seen in image 1.\n\nBelow it.\n\nA text layer\n\nSeen in image 2.\n\nBelow it.\n"; err != nil || doc.Text != want || doc.Engine != "pdfium+ocr" {
		t.Errorf("got %q by %s, error %v, want %q", doc.Text, doc.Engine, err, want)
	}
	if len(images) != 2 || !bytes.HasPrefix(images[0], []byte("\x89PNG")) || doc.Blocks[len(doc.Blocks)-1].Page != 3 {
		t.Errorf("%d images, last block %+v; want two PNG images of pages 1 and 3", len(images), doc.Blocks[len(doc.Blocks)-1])
	}
	picture := []byte("\x89PNG\r\n\x1a\n and so on")
	if doc, err := p.Parse(t.Context(), input(picture)); err != nil || doc.Text != "Seen in image 3.\n\nBelow it.\n" || !bytes.Equal(images[2], picture) {
		t.Errorf("picture: got %q, error %v", doc.Text, err)
	}
	fail = messages.Errorf(messages.CodeParseLimit, "OCR took too long")
	if _, err := p.Parse(t.Context(), input(picture)); codeOf(err) != messages.CodeParseLimit {
		t.Errorf("OCR that refuses: got %v", err)
	}
	fail = errors.New("no program")
	if _, err := p.Parse(t.Context(), input(picture)); err == nil || codeOf(err) != "" {
		t.Errorf("OCR that cannot start: got %v, want an error worth a retry", err)
	}
}

func TestAWorkerThatCannotStartIsNotTheDocumentsFault(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	broken := worker.New(worker.Config{Program: "/nonexistent"})
	defer broken.Close()
	if _, err := broken.Parse(t.Context(), input([]byte("x"))); err == nil || codeOf(err) != "" {
		t.Errorf("no program: got %v, want an error worth a retry", err)
	}
	p := pool(t, worker.Config{})
	if _, err := p.Parse(ended, input([]byte("x"))); !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: got %v", err)
	}
	short := input([]byte("x"))
	short.Size = 10 << 20
	if _, err := p.Parse(t.Context(), short); err == nil || codeOf(err) != "" {
		t.Errorf("content cut short: got %v, want an error worth a retry", err)
	}
	p.Close()
	if _, err := p.Parse(t.Context(), input([]byte("x"))); err == nil || codeOf(err) != "" {
		t.Errorf("closed: got %v, want an error worth a retry", err)
	}
}

// TestTheWorkerSeesNoEnvironment runs a worker that prints its environment instead of frames.
func TestTheWorkerSeesNoEnvironment(t *testing.T) {
	t.Setenv("WEIR_TEST_SECRET", "secret")
	script := t.TempDir() + "/worker"
	out := t.TempDir() + "/env"
	if err := os.WriteFile(script, []byte("#!/bin/sh\n/usr/bin/env >"+out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := worker.New(worker.Config{Program: script})
	defer p.Close()
	if _, err := p.Parse(t.Context(), input([]byte("x"))); codeOf(err) != messages.CodeDamagedDocument {
		t.Errorf("a worker without a word: got %v", err)
	}
	env, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(env), "secret") || strings.Contains(string(env), "HOME=") {
		t.Errorf("environment %q, error %v", env, err)
	}
}

func TestACacheOthersCanWriteToIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	p := worker.New(worker.Config{CacheDir: dir})
	defer p.Close()
	if err := p.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("got %v", err)
	}
}
