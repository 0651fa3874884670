package corpus_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

var (
	lines    = flag.Int("lines", 0, "size in MB of a file of JSON lines published over the object store")
	lineKB   = flag.Int("line-kb", 30, "size in KB of each of its lines")
	linesFor = flag.Duration("lines-for", 30*time.Minute, "time until all of them must be Ready")
)

// TestLargeLines publishes one large file of JSON lines and watches the memory of everything in this process: the
// ingester, and the indexer, the retriever and the NATS server besides.
func TestLargeLines(t *testing.T) {
	if *lines == 0 {
		t.Skip("no size: -lines MB")
	}
	file := filepath.Join(t.TempDir(), "large.jsonl")
	size, n := writeLines(t, file, int64(*lines)<<20, *lineKB<<10)
	cfg := workers()
	cfg.MaxDocumentBytes = 2 * size
	l := newLab(t, cfg)
	l.warm()
	peak, stop := highest()
	before := resident()
	began := l.publishLarge(file, "lines", "application/jsonl", size)
	e, err := l.wait("lines")
	for err != nil && time.Since(began) < *linesFor {
		e, err = l.wait("lines")
	}
	stop()
	fmt.Printf("%d MB of %d lines: %s in %.1f s, %+v; this process held %d MiB before and %d MiB at most\n",
		size>>20, n, e.Status, time.Since(began).Seconds(), e.Lines, before>>20, peak.Load()>>20)
	if err != nil || e.Status != messages.StatusReady || e.Lines == nil || e.Lines.Accepted != n || e.Lines.Failed != 0 {
		t.Fatalf("ended %+v, error %v, want %d lines", e, err, n)
	}
	withinService(t, peak)
}

// writeLines makes a file of lines of about so many bytes each, of words that repeat as those of texts do.
func writeLines(t *testing.T, file string, size int64, line int) (written int64, n int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &counting{w: bufio.NewWriterSize(f, 1<<20)}
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	zipf := rand.NewZipf(random, 1.1, 4, 50_000)
	for ; w.n < size; n++ {
		end := w.n + int64(line)
		fmt.Fprintf(w, `{"docId":"line %d","text":"`, n+1)
		for i := 0; w.n < end; i++ {
			fmt.Fprintf(w, "word%d", zipf.Uint64())
			if i%12 == 11 {
				fmt.Fprint(w, ".")
			}
			fmt.Fprint(w, " ")
		}
		fmt.Fprint(w, "\"}\n")
	}
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	return w.n, n
}
