package worker_test

import (
	"strings"
	"testing"

	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// BenchmarkSmallText is what reading a short text costs: the process is used again.
func BenchmarkSmallText(b *testing.B) {
	p := worker.New(worker.Config{})
	defer p.Close()
	text := []byte(strings.Repeat("## Title\n\nA paragraph of some words, as they come.\n\n", 40))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Parse(b.Context(), input(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProcess is what a process costs: markup is read in one of its own.
func BenchmarkProcess(b *testing.B) {
	p := worker.New(worker.Config{})
	defer p.Close()
	text := []byte("<p>" + strings.Repeat("A paragraph of some words, as they come. ", 2000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Parse(b.Context(), input(text)); err != nil {
			b.Fatal(err)
		}
	}
}
