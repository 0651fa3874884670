package corpus_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/cmd/weir/internal/corpus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

// Flags of `make corpus`; without a folder the tests run on a sample of our own files.
var (
	dir     = flag.String("corpus", "", "folder with an expect.jsonl")
	engine  = flag.String("pdf-engine", ingester.EnginePDFium, "as the ingester's setting")
	runs    = flag.Int("runs", 1, "read the folder so many times, and compare the memory")
	damaged = flag.Int("damaged", 0, "then publish so many randomly damaged files")
	every   = flag.Int("every", 1, "only each so-and-so-many-th file")
	last    string // line, printed behind everything the test framework says
)

func TestMain(m *testing.M) {
	parseworker.Main()
	flag.Parse()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if last != "" {
		fmt.Println(last)
	}
	os.Exit(code)
}

func workers() ingester.Config {
	return ingester.Config{ParseWorkers: 2, Parse: ingester.ParseConfig{PDFEngine: *engine}}
}

// TestCorpus runs a folder given on the command line.
func TestCorpus(t *testing.T) {
	if *dir == "" {
		t.Skip("no folder: make corpus CORPUS=DIR")
	}
	expected, err := corpus.Load(*dir)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, workers())
	l.warm()
	var memory []int64
	var report *corpus.Report
	for run := range *runs {
		report = l.all(*dir, expected, run)
		memory = append(memory, resident())
		if *runs > 1 {
			fmt.Printf("run %d: %s, service holds %d MiB\n", run+1, report.Last(), memory[run]>>20)
		}
	}
	for _, o := range report.Outcomes {
		o.Line(os.Stdout)
	}
	good := report.Summary(os.Stdout)
	l.speed(*dir, expected)
	if *runs > 2 {
		growth := float64(memory[*runs-1]) / float64(memory[1])
		fmt.Printf("bar: memory of the service, run %d to run 2: %.2f (want at most 1.25)\n", *runs, growth)
		good = good && growth <= 1.25
	}
	if *damaged > 0 {
		good = l.harm(*dir, expected, *damaged) && good
	}
	if last = report.Last(); !good {
		t.Error("a bar that decides is not met")
	}
}

// warm has a PDF read, so that loading the engine for the first time is in no figure.
func (l *lab) warm() {
	l.publish("warm", "warm.pdf", []byte("%PDF-1.4\n"))
	if _, err := l.wait("warm/warm.pdf"); err != nil {
		l.t.Fatal(err)
	}
}

// all publishes every file and judges what comes back: files that must be read a few at a time, then the
// hostile ones alone, each with an ordinary document behind it.
func (l *lab) all(dir string, expected []corpus.Expectation, run int) *corpus.Report {
	r := &corpus.Report{Gate: *engine}
	var harmless errgroup.Group
	harmless.SetLimit(3)
	var hostile []*corpus.Outcome
	for i, e := range expected {
		if i%*every != 0 {
			continue
		}
		o := &corpus.Outcome{Expect: e}
		r.Outcomes = append(r.Outcomes, o)
		if e.Kind == corpus.KindDamaged {
			hostile = append(hostile, o)
			continue
		}
		harmless.Go(func() error { return l.one(dir, o, fmt.Sprintf("r%d-%d", run, i)) })
	}
	if err := harmless.Wait(); err != nil {
		l.t.Error(err)
	}
	for i, o := range hostile {
		if err := l.one(dir, o, fmt.Sprintf("r%d-h%d", run, i)); err != nil {
			l.t.Error(err)
		}
	}
	return r
}

// one publishes a file and fills in what became of it.
func (l *lab) one(dir string, o *corpus.Outcome, subspace string) error {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(o.Expect.File)))
	if err != nil {
		return err
	}
	began := time.Now()
	id := o.Expect.File
	submit := subspace + "/" + id
	if o.Expect.Kind == corpus.KindEncrypted {
		if submit, err = l.locked(o, subspace, data); err != nil {
			return err
		}
	} else {
		l.publish(subspace, id, data)
	}
	if submit == "" {
		return nil
	}
	behind := began
	if o.Expect.Kind == corpus.KindDamaged {
		behind = time.Now()
		l.publish(subspace, "behind.md", []byte("# Behind\n\nAn ordinary document behind "+id+".\n"))
		if e, err := l.wait(subspace + "/behind.md"); err != nil || e.Status != messages.StatusReady {
			o.Faults = append(o.Faults, fmt.Sprintf("the document behind it ended %+v, %v", e, err))
		}
		o.Behind = time.Since(behind)
	}
	e, err := l.wait(submit)
	o.Took = time.Since(began)
	if err != nil {
		o.Faults = append(o.Faults, err.Error())
		return nil
	}
	return l.judge(o, subspace, e)
}

func (l *lab) judge(o *corpus.Outcome, subspace string, e messages.Event) error {
	id := o.Expect.File
	o.Status = e.Status
	if e.Error != nil {
		o.Code = e.Error.Code
	}
	p := l.report(id)
	o.Engine, o.Pages, o.Peak = p.Engine, p.Pages, p.PeakBytes
	if e.Status == messages.StatusReady {
		chunks, err := l.chunks(subspace, id)
		if err != nil {
			return err
		}
		info, err := call[messages.DocumentInfo](l, kbName, messages.OpDocGet, nil, messages.DocumentRef{DocID: id, Subspace: subspace})
		if err != nil {
			return err
		}
		o.Chunks = len(chunks)
		o.Verdict = corpus.Judge(o.Expect, corpus.Found{
			Title: info.Title, Chunks: chunks, Search: func(phrase string) []messages.RetrievedChunk { return l.search(subspace, phrase) },
		})
	}
	const behind, memory = 2 * time.Second, 1 << 30
	o.Settle(corpus.Limits{Wall: 2*time.Minute + 10*time.Second, Peak: memory, Behind: behind})
	return nil
}

// locked publishes a protected file without its password, which must be refused by name, and then asks for
// it to be taken in with it. It returns the submit; "" when that failed.
func (l *lab) locked(o *corpus.Outcome, subspace string, data []byte) (string, error) {
	l.publish(subspace+"-locked", o.Expect.File, data)
	e, err := l.wait(subspace + "-locked/" + o.Expect.File)
	if err != nil {
		return "", err
	}
	if e.Error == nil || e.Error.Code != messages.CodePasswordRequired {
		o.Faults = append(o.Faults, fmt.Sprintf("without its password it ended %s %+v", e.Status, e.Error))
	}
	if _, err := l.submit(subspace, o.Expect.File, "not the password", data); err == nil {
		o.Faults = append(o.Faults, "a wrong password opened it")
	}
	reply, err := l.submit(subspace, o.Expect.File, o.Expect.Password, data)
	if err != nil {
		o.Faults = append(o.Faults, "its password did not open it: "+err.Error())
		return "", nil
	}
	return reply.SubmitID, nil
}

// speed publishes all PDFs that must be read at once and prints how many pages came a second.
func (l *lab) speed(dir string, expected []corpus.Expectation) {
	pages, ids := 0, []string{}
	var files [][]byte
	for _, e := range expected {
		if e.Kind != corpus.KindOK || !strings.HasSuffix(e.File, ".pdf") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.File)))
		if err != nil {
			l.t.Fatal(err)
		}
		files, ids, pages = append(files, data), append(ids, e.File), pages+e.Pages
	}
	if pages == 0 {
		return
	}
	began := time.Now()
	for i, id := range ids {
		l.publish("speed", id, files[i])
	}
	for _, id := range ids {
		if _, err := l.wait("speed/" + id); err != nil {
			l.t.Error(err)
		}
	}
	took := time.Since(began)
	mark := "met"
	if float64(pages) < 60*took.Seconds() {
		mark = "NOT MET"
	}
	fmt.Printf("bar: %d PDFs of %d pages from publish to Ready, two workers: %.1f s, %.0f pages/s (want 60): %s\n", len(ids), pages, took.Seconds(), float64(pages)/took.Seconds(), mark)
}

// resident is the memory this process holds after a collection, in bytes.
func resident() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	return held()
}

// held is the memory this process holds, in bytes.
func held() int64 {
	stat, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(stat))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
