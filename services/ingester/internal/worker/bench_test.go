package worker_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// BenchmarkSmallText is what reading a text of ten chunks costs: the process is used again.
func BenchmarkSmallText(b *testing.B) {
	var text strings.Builder
	for section := range 10 {
		fmt.Fprintf(&text, "# Section %d\n\n%s\n\n", section, strings.Repeat("Some words as they come. ", 50))
	}
	benchmark(b, text.String())
}

// BenchmarkProcess is what a process costs: markup is read in one of its own.
func BenchmarkProcess(b *testing.B) {
	benchmark(b, "<p>"+strings.Repeat("A paragraph of some words, as they come. ", 2000))
}

// benchmark reports the processor time of a document too: of the pool (own) and of its processes, with
// their start and their end.
func benchmark(b *testing.B, text string) {
	p := worker.New(worker.Config{})
	defer p.Close()
	in := input([]byte(text))
	in.ContentType, in.Name = "text/markdown", "d1"
	if strings.HasPrefix(text, "<") {
		in.ContentType = "text/html"
	}
	own, children := processorTime(b, syscall.RUSAGE_SELF), processorTime(b, syscall.RUSAGE_CHILDREN)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Parse(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	own = processorTime(b, syscall.RUSAGE_SELF) - own
	p.Close()
	children = processorTime(b, syscall.RUSAGE_CHILDREN) - children
	b.ReportMetric(float64(own.Nanoseconds())/1e3/float64(b.N), "own-cpu-µs/op")
	b.ReportMetric(float64(children.Nanoseconds())/1e3/float64(b.N), "children-cpu-µs/op")
}

func processorTime(b *testing.B, who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
