package lexical

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// fingerprintCorpus is a text in many scripts, one sample a line.
//
//go:embed fingerprint_corpus.txt
var fingerprintCorpus string

// Fingerprint returns a hash of what the analyzer makes of a fixed text in many scripts, and of its tables:
// 64 hexadecimal digits. Two builds whose fingerprints differ must not share an index.
func (a *Analyzer) Fingerprint() string { return a.print() }

func fingerprint(a *Analyzer) string {
	h := sha256.New()
	for line := range strings.Lines(fingerprintCorpus) {
		for _, t := range a.Analyze(line) {
			fmt.Fprintf(h, "%q %d %d %t\n", t.Term, t.Position, t.Kind, t.Stop)
		}
	}
	stop := make([]string, 0, len(a.stop))
	for w := range a.stop {
		stop = append(stop, w)
	}
	slices.Sort(stop)
	fmt.Fprintf(h, "%q\n", stop)
	for r := rune(hanFoldFirst); r <= hanFoldLast; r++ {
		if to := a.han.fold(r); to != r {
			fmt.Fprintf(h, "%c%c", r, to)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
