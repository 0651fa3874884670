package pdf

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weir-project/weir/pkg/messages"
)

// wasmMost is all WebAssembly can address, in its pages: the cap is kept by memory, which can tell.
const wasmMost = 1 << 16

// MemoryBytes is the most memory PDFium may have, whatever the file. Page images for OCR take the most.
const MemoryBytes = 256 << 20

// Runtime is PDFium, loaded and ready to open files.
type Runtime struct {
	pool     pdfium.Pool
	instance pdfium.Pdfium
	memory   *memory
}

// NewRuntime loads PDFium. Its machine code is kept in cacheDir, where the first call of all takes
// seconds and 350 MB to make it, and later ones a tenth of a second; "" keeps nothing. Code in cacheDir is
// run: it must be a directory that nobody else can write to. An error that is a *messages.Error says that the
// process has too little memory for any PDF.
func NewRuntime(ctx context.Context, cacheDir string) (*Runtime, error) {
	r := &Runtime{memory: &memory{space: reserve(MemoryBytes)}}
	if r.memory.space == nil {
		return nil, messages.Errorf(messages.CodeParseLimit, "a PDF takes %d MiB of engine memory, which is over the limit of memory of this process", MemoryBytes>>20)
	}
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(wasmMost)
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("open compilation cache: %w", err)
		}
		config = config.WithCompilationCache(cache)
	}
	var err error
	r.pool, err = webassembly.Init(webassembly.Config{
		Context: experimental.WithMemoryAllocator(ctx, r.memory), MaxIdle: 1, MaxTotal: 1,
		FSConfig: wazero.NewFSConfig(), RuntimeConfig: config, Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("load PDFium: %w", err)
	}
	const patience = time.Minute // it is free: this is the only user
	if r.instance, err = r.pool.GetInstance(patience); err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	return r, nil
}

// Close frees it.
func (r *Runtime) Close() error {
	if err := r.pool.Close(); err != nil {
		return fmt.Errorf("close PDFium: %w", err)
	}
	return nil
}

// memory is the WebAssembly memory of the one instance, which grows in place: address space for all of it
// is reserved at once and the system fills in what is touched. Growing by copying would need several
// times the limit.
type memory struct {
	space   []byte
	refused bool // growth beyond the limit was asked for
}

// Allocate gives the memory.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate gives the memory a size; nil when that is over the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.space)) {
		m.refused = true
		return nil
	}
	return m.space[:size:size]
}

// Free gives the memory back.
func (m *memory) Free() {
	release(m.space)
	m.space = nil
}
