package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// Config says how documents are read.
type Config struct {
	// Program is one whose main begins with Main; empty: this one.
	Program string
	// Idle is how many started processes may wait for a document; 0: 1.
	Idle   int
	Limits parse.Limits
	// CacheDir keeps the machine code of the PDF engine, which is run from there: nobody else may be able
	// to write to it. Empty: every process that reads a PDF makes it anew, in seconds.
	CacheDir string
	// Light has the light PDF engine asked first.
	Light bool
	// Recognise reads images (OCR); nil: images and scans end NO_TEXT.
	Recognise func(ctx context.Context, image []byte) (string, error)
	// Observe is told about every document read; nil: nobody is.
	Observe func(Report)
	Logger  *slog.Logger // nil: silent
}

// Input is one document. Open may be called more than once, and gives Size bytes each time.
type Input struct {
	Open        func(ctx context.Context) io.Reader
	Size        int64
	ContentType string // declared media type, with its charset parameter; may be empty
	Name        string // file name, object key or similar; only its extension is used; may be empty
	Title       string // the caller's title; may be empty
	Password    string // opens a protected document; may be empty
}

// Report says what reading one document took.
type Report struct {
	Name      string
	Format    string // empty when it was not found out
	Engine    string // that read the pages, where there is a choice
	Pages     int
	PeakBytes int64 // most memory the process held; as far as it was seen when it had to be killed
	Wall      time.Duration
	Killed    bool // the process did not end by itself
	Err       error
}

// Pool reads documents, each in a process. Safe for concurrent use; the caller bounds how many at once.
// Close it.
type Pool struct {
	cfg     Config
	log     *slog.Logger
	starter *starter

	mu      sync.Mutex
	idle    []*child
	closed  bool
	ends    sync.WaitGroup // of processes that were let go
	warned  sync.Once
	warming sync.Once
	warm    chan struct{} // closed when Warm is over
	cached  atomic.Bool   // the cache can be used
}

// New returns a pool; it starts nothing.
func New(cfg Config) *Pool {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Idle == 0 {
		cfg.Idle = 1
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pool{cfg: cfg, log: cfg.Logger, starter: newStarter(cfg.Program), warm: make(chan struct{})}
}

// Close ends all processes and waits for them. Documents being read fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		p.letGo(c)
	}
	p.ends.Wait()
	p.starter.close()
}

// Limits are those in force.
func (p *Pool) Limits() parse.Limits { return p.cfg.Limits }

var errClosed = errors.New("the pool of parse workers is closed")

// Warm fills the cache of the PDF engine, and PDFs wait until that is over. When it fails the pool works
// without a cache. Without a directory for one it does nothing. Call it once, before the first document.
func (p *Pool) Warm(ctx context.Context) error {
	if p.cfg.CacheDir == "" {
		return nil
	}
	defer p.warming.Do(func() { close(p.warm) })
	err := prepareCache(p.cfg.CacheDir)
	if err == nil {
		const patience = 3 * time.Minute // a slow machine, and others that do the same
		limits := parse.Limits{Wall: patience, Stall: patience, Memory: 2 << 30}.WithDefaults()
		_, _, err = p.run(ctx, job{request: request{Op: opWarm, CacheDir: p.cfg.CacheDir, Limits: limits}})
	}
	p.cached.Store(err == nil)
	if err != nil {
		return fmt.Errorf("warm the PDF engine's cache: %w", err)
	}
	return nil
}

// cacheDir waits until Warm is over, since a PDF read before would make the engine's code anew. It gives
// the directory to use; "" is none.
func (p *Pool) cacheDir(ctx context.Context) string {
	if p.cfg.CacheDir == "" {
		return ""
	}
	select {
	case <-p.warm:
	case <-ctx.Done():
	}
	if p.cached.Load() {
		return p.cfg.CacheDir
	}
	return ""
}

// Parse reads a document. Errors that belong to the document are *messages.Error; any other error (the
// context ended, no process could be started) is worth a retry.
func (p *Pool) Parse(ctx context.Context, in Input) (parse.Document, error) {
	if in.Size > int64(p.cfg.Limits.FileBytes) {
		return parse.Document{}, messages.Errorf(messages.CodeParseLimit, "the file is over the limit of %d bytes", p.cfg.Limits.FileBytes)
	}
	if err := ctx.Err(); err != nil {
		return parse.Document{}, fmt.Errorf("read document: %w", err)
	}
	began := time.Now()
	got, peak, err := p.retrying(ctx, p.job(opParse, in))
	if p.cfg.Observe != nil {
		p.cfg.Observe(Report{
			Name: in.Name, Format: got.doc.Format, Engine: got.doc.Engine, Pages: got.doc.Pages, PeakBytes: peak,
			Wall: time.Since(began), Killed: got.killed, Err: err,
		})
	}
	return got.doc, err
}

// Unlock opens a protected document with its password and gives it without protection.
func (p *Pool) Unlock(ctx context.Context, data []byte, password string) ([]byte, error) {
	in := bytesInput(data)
	in.Password = password
	got, _, err := p.retrying(ctx, p.job(opUnlock, in))
	return got.data, err
}

func (p *Pool) job(op string, in Input) job {
	return job{open: in.Open, request: request{
		Op: op, Size: in.Size, ContentType: in.ContentType, Name: in.Name, Title: in.Title, Password: in.Password,
		Limits: p.cfg.Limits, Light: p.cfg.Light, Recognise: p.cfg.Recognise != nil,
	}}
}

// retrying does a job anew where the fault may not be the document's: a process that had read others
// before died, or the light PDF engine did.
func (p *Pool) retrying(ctx context.Context, j job) (result, int64, error) {
	if err := p.peek(ctx, &j); err != nil {
		return result{}, 0, err
	}
	got, peak, err := p.run(ctx, j)
	if got.killed && ctx.Err() == nil && (got.used || j.request.Light) {
		j.request.Light, j.fresh = false, true
		return p.run(ctx, j)
	}
	return got, peak, err
}

// run does a job in one process.
func (p *Pool) run(ctx context.Context, j job) (result, int64, error) {
	c, err := p.acquire(ctx, j.fresh || j.request.Op != opParse)
	if err != nil {
		return result{}, 0, err
	}
	j.recognise = p.cfg.Recognise
	got, err := c.do(ctx, j)
	if len(got.missing) > 0 {
		p.warned.Do(func() { p.log.Warn("parse workers run without some limits on this system", "missing", got.missing) })
	}
	p.release(c, got.reusable && err == nil)
	return got, max(got.peak, c.peak.Load()), err
}

// acquire takes a waiting process, or starts one.
func (p *Pool) acquire(ctx context.Context, fresh bool) (*child, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errClosed
		}
		var c *child
		for i := len(p.idle) - 1; i >= 0 && c == nil; i-- {
			if !fresh || p.idle[i].docs == 0 {
				c = p.idle[i]
				p.idle = append(p.idle[:i], p.idle[i+1:]...)
			}
		}
		p.mu.Unlock()
		switch {
		case c == nil:
			return p.starter.start(ctx)
		case c.alive():
			return c, nil
		}
		p.letGo(c)
	}
}

// release keeps a process for the next document, or lets it go.
func (p *Pool) release(c *child, reusable bool) {
	p.mu.Lock()
	keep := reusable && !p.closed && len(p.idle) < p.cfg.Idle
	if keep {
		p.idle = append(p.idle, c)
	} else {
		p.ends.Add(1)
	}
	p.mu.Unlock()
	if !keep {
		go func() {
			defer p.ends.Done()
			c.end()
		}()
	}
}

func (p *Pool) letGo(c *child) { c.end() }
