package corpus_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

var large = flag.Int("large", 0, "size in MB of a PDF published over the object store")

// TestLargePDF publishes one large PDF and watches the memory of everything in this process: the ingester, and
// the indexer, the retriever and the NATS server besides. The folder's other tests are not needed for it.
func TestLargePDF(t *testing.T) {
	if *large == 0 {
		t.Skip("no size: -large MB")
	}
	file := filepath.Join(t.TempDir(), "large.pdf")
	size := writeLarge(t, file, int64(*large)<<20)
	cfg := workers()
	cfg.MaxDocumentBytes = 2 * size
	l := newLab(t, cfg)
	l.warm()
	peak, stop := highest()
	before := resident()
	began := l.publishLarge(file, "large", "application/pdf", size)
	e, err := l.wait("large")
	stop()
	r := l.report("large.pdf")
	fmt.Printf("%d MB PDF of %d pages: %s in %.1f s; this process held %d MiB before and %d MiB at most, the worker %d MiB\n",
		size>>20, r.Pages, e.Status, time.Since(began).Seconds(), before>>20, peak.Load()>>20, r.PeakBytes>>20)
	if err != nil || e.Status != messages.StatusReady {
		t.Fatalf("ended %+v, error %v", e, err)
	}
	withinService(t, peak)
	if most := int64(1<<30) + size; r.PeakBytes > most {
		t.Errorf("the worker held %d MiB, want at most %d", r.PeakBytes>>20, most>>20)
	}
}

// publishLarge uploads a file and publishes it as a document of the file's name. It returns when it was published.
func (l *lab) publishLarge(file, id, contentType string, size int64) time.Time {
	name := filepath.Base(file)
	l.upload(file, name)
	body, err := messages.Encode(messages.Submit{
		DocID: name, Subspace: "large", ContentType: contentType, Upload: &messages.Upload{Object: name, Size: size},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	began := time.Now()
	if _, err := l.js.Publish(l.t.Context(), messages.SubmitSubject(tenant, kbName), body, jetstream.WithMsgID(id)); err != nil {
		l.t.Fatal(err)
	}
	return began
}

// withinService fails a test whose process held more than the ingester may.
func withinService(t *testing.T, peak *atomic.Int64) {
	t.Helper()
	const service = 300 << 20
	if peak.Load() > service {
		t.Errorf("the process held %d MiB, want at most %d", peak.Load()>>20, service>>20)
	}
}

func (l *lab) upload(file, object string) {
	bucket, err := l.js.ObjectStore(l.t.Context(), messages.UploadBucket(tenant))
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := bucket.Put(l.t.Context(), jetstream.ObjectMeta{Name: object}, f); err != nil {
		l.t.Fatal(err)
	}
}

// highest watches the memory this process holds until it is stopped.
func highest() (peak *atomic.Int64, stop func()) {
	peak = &atomic.Int64{}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				peak.Store(max(peak.Load(), held()))
			}
		}
	}()
	return peak, func() { close(done); <-ended }
}

// writeLarge makes a PDF of pages with a line of text each, and pictures of noise that fill it up.
func writeLarge(t *testing.T, file string, size int64) int64 {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &counting{w: bufio.NewWriterSize(f, 1<<20)}
	noise := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	pages := int(size >> 20)
	var offsets []int64
	object := func(format string, args ...any) {
		offsets = append(offsets, w.n)
		fmt.Fprintf(w, "%d 0 obj\n", len(offsets))
		fmt.Fprintf(w, format, args...)
	}
	fmt.Fprint(w, "%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>\nendobj\n")
	object("<< /Type /Pages /Count %d /Kids [", pages)
	for i := range pages {
		fmt.Fprintf(w, "%d 0 R ", 4+3*i)
	}
	fmt.Fprint(w, "] >>\nendobj\n")
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>\nendobj\n")
	for i := range pages {
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> /XObject << /I %d 0 R >> >> /Contents %d 0 R >>\nendobj\n", 6+3*i, 5+3*i)
		text := fmt.Sprintf("BT /F1 12 Tf 72 700 Td (Page %d of the large file) Tj ET q 100 0 0 100 72 500 cm /I Do Q", i+1)
		object("<< /Length %d >>\nstream\n%s\nendstream\nendobj\n", len(text), text)
		object("<< /Type /XObject /Subtype /Image /Width 1024 /Height 1024 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length %d >>\nstream\n", len(noise))
		if _, err := w.Write(noise); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, "\nendstream\nendobj\n")
	}
	start := w.n
	fmt.Fprintf(w, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(w, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(w, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	return w.n
}

// counting counts what is written.
type counting struct {
	w *bufio.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
