// Package demo holds what `weir demo` shows: where the example documents are and what is asked about them.
package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// KB is the knowledge base of the demo.
const KB = "demo"

// Question is something asked about the examples.
type Question struct {
	Kind string // for people: what the question shows
	Text string
	Doc  string // the example that answers it
}

// Questions are the three questions of the demo: one in English that shares few words with its answer, one
// in Chinese, and an identifier that only a word index can find for sure.
func Questions() []Question {
	return []Question{
		{"English, in other words than the document's", "Why does the chain skip when I pedal hard?", "bicycle-workshop-faq.html"},
		{"Chinese", "下雨天刹车不灵怎么办？", "bicycle-brakes-zh.pdf"},
		{"an exact identifier", "E-4217", "espresso-machine-handbook.pdf"},
	}
}

// ErrNoExamples is returned by Examples when there is no such folder.
var ErrNoExamples = errors.New("no folder of examples")

// Examples finds the folder of examples: given, else examples in the working directory, else beside the
// folder of the program, as in a checkout.
func Examples(given, program string) (string, error) {
	candidates := []string{given}
	if given == "" {
		candidates = []string{"examples", filepath.Join(filepath.Dir(program), "..", "examples")}
	}
	for _, dir := range candidates {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: looked at %q; run it in a checkout, or name one with --examples", ErrNoExamples, candidates)
}
