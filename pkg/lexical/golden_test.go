package lexical

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenSamples compares the tokens of every line of testdata/samples.txt with testdata/samples.golden.
func TestGoldenSamples(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("testdata/samples.txt")
	if err != nil {
		t.Fatal(err)
	}
	a := lex1(t)
	var b strings.Builder
	for line := range strings.Lines(string(in)) {
		line = strings.TrimSuffix(line, "\n")
		fmt.Fprintf(&b, "%s\n", line)
		for _, tok := range a.Analyze(line) {
			fmt.Fprintf(&b, "\t%d\t%s\t%s\t%q\n", tok.Position, describe(tok), tok.Term, line[tok.Start:tok.End])
		}
	}
	compareGolden(t, "testdata/samples.golden", b.String())
}

// TestGoldenQueries does the same for queries.
func TestGoldenQueries(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("testdata/queries.txt")
	if err != nil {
		t.Fatal(err)
	}
	a := lex1(t)
	var b strings.Builder
	for line := range strings.Lines(string(in)) {
		line = strings.TrimSuffix(line, "\n")
		q := a.Query(line)
		fmt.Fprintf(&b, "%s\n\tstopOnly=%t truncated=%t\n", line, q.StopOnly, q.Truncated)
		for _, term := range q.Terms {
			fmt.Fprintf(&b, "\tfirst\t%s\t%.2f\t%s\n", term.Kind, term.Weight, term.Term)
		}
		for _, term := range q.Second {
			fmt.Fprintf(&b, "\tsecond\t%s\t%.2f\t%s\n", term.Kind, term.Weight, term.Term)
		}
	}
	compareGolden(t, "testdata/queries.golden", b.String())
}

func describe(tok Token) string {
	if tok.Stop {
		return tok.Kind.String() + " stop"
	}
	return tok.Kind.String()
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := lineAt(gotLines, i), lineAt(wantLines, i)
		if g != w {
			t.Fatalf("%s line %d: got %q, want %q", path, i+1, g, w)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

func lex1(tb testing.TB) *Analyzer {
	tb.Helper()
	a, err := Lookup("lex1")
	if err != nil {
		tb.Fatal(err)
	}
	return a
}
