package demo_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-project/weir/cmd/weir/internal/demo"
)

func TestEveryQuestionHasItsDocument(t *testing.T) {
	t.Parallel()
	examples := filepath.Join("..", "..", "..", "..", "examples")
	if len(demo.Questions()) != 3 {
		t.Errorf("got %d questions, want 3", len(demo.Questions()))
	}
	for _, q := range demo.Questions() {
		if _, err := os.Stat(filepath.Join(examples, q.Doc)); err != nil {
			t.Errorf("%s: %v", q.Text, err)
		}
	}
}

func TestExamplesAreFoundOrTold(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"bin", "examples"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := demo.Examples("", filepath.Join(root, "bin", "weir"))
	if err != nil || filepath.Clean(got) != filepath.Join(root, "examples") {
		t.Errorf("beside the program: got %s, %v", got, err)
	}
	if got, err := demo.Examples(filepath.Join(root, "bin"), ""); err != nil || got != filepath.Join(root, "bin") {
		t.Errorf("given: got %s, %v", got, err)
	}
	if _, err := demo.Examples(filepath.Join(root, "no"), ""); !errors.Is(err, demo.ErrNoExamples) {
		t.Errorf("missing: got %v, want ErrNoExamples", err)
	}
}
