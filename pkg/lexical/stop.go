package lexical

import (
	_ "embed"
	"strings"
)

//go:embed stopwords_en.txt
var stopWordsEnglish string

// loadStopWords reads a stop list: words separated by white space, lines that begin with # left out.
func loadStopWords(list string) map[string]bool {
	stop := map[string]bool{}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, w := range strings.Fields(line) {
			stop[w] = true
		}
	}
	return stop
}
