package ingester

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-project/weir/services/ingester/internal/ocr"
	"github.com/weir-project/weir/services/ingester/internal/parse"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// ParseReport says what reading one document took.
type ParseReport = worker.Report

// Names of the PDF engines.
const (
	EnginePDFium = "pdfium"
	EngineGate   = "gate" // ledongthuc/pdf, and PDFium for what a gate has doubts about
)

// ParseConfig says how documents are read, each in a process of its own. A zero field takes its default.
type ParseConfig struct {
	// CacheDir keeps the machine code of the PDF engine. It is run from there, so nobody else may be able to
	// write to it. Empty: weir/parse in the user's cache directory, else one of ours in the system's temporary
	// directory.
	CacheDir string
	// PDFEngine is pdfium (the default) or gate.
	PDFEngine string
	// Wall is how long one document may take, by the clock; 0: 2 min. Stall is how long it may take without a
	// new page or part; 0: 15 s.
	Wall, Stall time.Duration
	// MemoryBytes is what the process of one document may take beyond the document itself; 0: 1 GiB.
	MemoryBytes int64
	// OCR is a command line that reads the text in an image, with {input} for its file; empty: images and scans
	// end NO_TEXT. OCRTimeout is what one image may take; 0: 1 min. OCRBytes is the most text of one; 0: 1 MiB.
	// OCRPages is how many pages of a document are read so; 0: 100.
	OCR        string
	OCRTimeout time.Duration
	OCRBytes   int
	OCRPages   int
	// Pages is the most pages a PDF may have; 0: 5,000. TextBytes is the most text a document may give; 0: 32 MiB.
	Pages, TextBytes int
}

func defaultParseConfig() ParseConfig {
	l := parse.Limits{}.WithDefaults()
	return ParseConfig{
		PDFEngine: EnginePDFium, Wall: l.Wall, Stall: l.Stall, MemoryBytes: l.Memory, Pages: l.Pages, TextBytes: l.TextBytes,
		OCRTimeout: time.Minute, OCRBytes: 1 << 20, OCRPages: l.OCRPages,
	}
}

func (c ParseConfig) withDefaults() ParseConfig {
	d := defaultParseConfig()
	if c.PDFEngine == "" {
		c.PDFEngine = d.PDFEngine
	}
	for _, f := range []struct{ field, value *time.Duration }{{&c.Wall, &d.Wall}, {&c.Stall, &d.Stall}, {&c.OCRTimeout, &d.OCRTimeout}} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	for _, f := range []struct{ field, value *int }{
		{&c.Pages, &d.Pages}, {&c.TextBytes, &d.TextBytes}, {&c.OCRBytes, &d.OCRBytes}, {&c.OCRPages, &d.OCRPages},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = d.MemoryBytes
	}
	return c
}

func (c *ParseConfig) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.CacheDir, "parse-cache-dir", c.CacheDir, "directory for the code of the PDF engine; nobody else may write to it (default: in the user's cache directory)")
	fs.StringVar(&c.PDFEngine, "pdf-engine", c.PDFEngine, "pdfium, or gate: a light engine first, PDFium where its text is in doubt")
	fs.DurationVar(&c.Wall, "parse-wall", c.Wall, "time one document may take")
	fs.DurationVar(&c.Stall, "parse-stall", c.Stall, "time one document may take without a new page or part")
	fs.Int64Var(&c.MemoryBytes, "parse-worker-memory-bytes", c.MemoryBytes, "memory of the process that reads one document, beyond the document, in bytes")
	fs.IntVar(&c.Pages, "parse-pages", c.Pages, "most pages of a PDF")
	fs.IntVar(&c.TextBytes, "parse-text-bytes", c.TextBytes, "most text of one document, in bytes")
	fs.StringVar(&c.OCR, "ocr-command", c.OCR, "command that prints the text of an image, {input} is its file; empty: no OCR")
	fs.DurationVar(&c.OCRTimeout, "ocr-timeout", c.OCRTimeout, "time for OCR of one image")
	fs.IntVar(&c.OCRBytes, "ocr-text-bytes", c.OCRBytes, "most text of one image, in bytes")
	fs.IntVar(&c.OCRPages, "ocr-pages", c.OCRPages, "most pages of one document that are read by OCR")
}

func (c *ParseConfig) validate() error {
	var problems []error
	if c.PDFEngine != "" && c.PDFEngine != EnginePDFium && c.PDFEngine != EngineGate {
		problems = append(problems, fmt.Errorf("pdf-engine: %q is not %s or %s", c.PDFEngine, EnginePDFium, EngineGate))
	}
	for flag, n := range map[string]int64{
		"parse-wall": int64(c.Wall), "parse-stall": int64(c.Stall), "parse-worker-memory-bytes": c.MemoryBytes,
		"parse-pages": int64(c.Pages), "parse-text-bytes": int64(c.TextBytes),
		"ocr-timeout": int64(c.OCRTimeout), "ocr-text-bytes": int64(c.OCRBytes), "ocr-pages": int64(c.OCRPages),
	} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", flag))
		}
	}
	if c.OCR != "" {
		if _, err := ocr.New(ocr.Config{Line: c.OCR}); err != nil {
			problems = append(problems, fmt.Errorf("ocr-command: %w", err))
		}
	}
	return errors.Join(problems...)
}

// workers is the configuration of the processes.
func (c Config) workers(deps Deps) worker.Config {
	out := worker.Config{
		Program: deps.Worker, Idle: c.ParseWorkers, CacheDir: c.Parse.cacheDir(), Light: c.Parse.PDFEngine == EngineGate,
		Observe: deps.Parsed, Logger: deps.Logger,
		Limits: parse.Limits{
			FileBytes: int(c.MaxDocumentBytes), Wall: c.Parse.Wall, Stall: c.Parse.Stall, Memory: c.Parse.MemoryBytes,
			Pages: c.Parse.Pages, TextBytes: c.Parse.TextBytes, OCRPages: c.Parse.OCRPages,
		},
	}
	if command, err := ocr.New(ocr.Config{Line: c.Parse.OCR, Timeout: c.Parse.OCRTimeout, OutputBytes: c.Parse.OCRBytes}); err == nil {
		out.Recognise = command.Recognise // the configuration was validated: an error is an empty line
	}
	return out
}

// cacheDir is where the engine's code is kept when nothing is said.
func (c ParseConfig) cacheDir() string {
	if c.CacheDir != "" {
		return c.CacheDir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "weir", "parse")
		if os.MkdirAll(dir, 0o700) == nil {
			return dir
		}
	}
	// A container without a home of its own: the pool refuses the directory if somebody else was first.
	return filepath.Join(os.TempDir(), fmt.Sprintf("weir-parse-%d", os.Getuid()))
}

// warm gets the PDF engine ready before the first PDF comes. Without its cache PDFs take seconds longer.
func (s *Service) warm(ctx context.Context) error {
	if err := s.workers.Warm(ctx); err != nil && ctx.Err() == nil {
		s.deps.Logger.WarnContext(ctx, "the PDF engine has no cache: every PDF takes seconds longer", "err", err)
	}
	return nil
}
