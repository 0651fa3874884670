package ingester

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	// write to it. Empty: weir/parse in the user's cache directory, else a temporary one.
	CacheDir string
	// PDFEngine is pdfium (the default) or gate.
	PDFEngine string
	// Wall is how long one document may take, by the clock; 0: 2 min. Stall is how long it may take without a
	// new page or part; 0: 15 s.
	Wall, Stall time.Duration
	// MemoryBytes is what the process of one document may take beyond the document itself; 0: 1 GiB.
	MemoryBytes int64
	// Pages is the most pages a PDF may have; 0: 5,000. TextBytes is the most text a document may give; 0: 32 MiB.
	Pages, TextBytes int
}

func defaultParseConfig() ParseConfig {
	l := parse.Limits{}.WithDefaults()
	return ParseConfig{
		PDFEngine: EnginePDFium, Wall: l.Wall, Stall: l.Stall, MemoryBytes: l.Memory, Pages: l.Pages, TextBytes: l.TextBytes,
	}
}

func (c ParseConfig) withDefaults() ParseConfig {
	d := defaultParseConfig()
	if c.PDFEngine == "" {
		c.PDFEngine = d.PDFEngine
	}
	for _, f := range []struct{ field, value *time.Duration }{{&c.Wall, &d.Wall}, {&c.Stall, &d.Stall}} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	for _, f := range []struct{ field, value *int }{{&c.Pages, &d.Pages}, {&c.TextBytes, &d.TextBytes}} {
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
}

func (c *ParseConfig) validate() error {
	var problems []error
	if c.PDFEngine != "" && c.PDFEngine != EnginePDFium && c.PDFEngine != EngineGate {
		problems = append(problems, fmt.Errorf("pdf-engine: %q is not %s or %s", c.PDFEngine, EnginePDFium, EngineGate))
	}
	for flag, n := range map[string]int64{
		"parse-wall": int64(c.Wall), "parse-stall": int64(c.Stall), "parse-worker-memory-bytes": c.MemoryBytes,
		"parse-pages": int64(c.Pages), "parse-text-bytes": int64(c.TextBytes),
	} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", flag))
		}
	}
	return errors.Join(problems...)
}

// workers is the configuration of the processes.
func (c Config) workers(deps Deps) worker.Config {
	return worker.Config{
		Program: deps.Worker, Idle: c.ParseWorkers, CacheDir: c.Parse.cacheDir(), Light: c.Parse.PDFEngine == EngineGate,
		Observe: deps.Parsed, Logger: deps.Logger,
		Limits: parse.Limits{
			FileBytes: int(c.MaxDocumentBytes), Wall: c.Parse.Wall, Stall: c.Parse.Stall, Memory: c.Parse.MemoryBytes,
			Pages: c.Parse.Pages, TextBytes: c.Parse.TextBytes,
		},
	}
}

// cacheDir is where the engine's code is kept when nothing is said.
func (c ParseConfig) cacheDir() string {
	if c.CacheDir != "" {
		return c.CacheDir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "weir", "parse")
	}
	return ""
}

// warm gets the PDF engine ready before the first PDF comes. Without its cache PDFs take seconds longer.
func (s *Service) warm(ctx context.Context) error {
	if err := s.workers.Warm(ctx); err != nil && ctx.Err() == nil {
		s.deps.Logger.WarnContext(ctx, "the PDF engine has no cache: every PDF takes seconds longer", "err", err)
	}
	return nil
}
