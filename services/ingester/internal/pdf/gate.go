package pdf

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// gate looks for signs that text of the light engine is wrong. It sees the text, and which fonts and
// objects the page has; when in doubt it says so, since PDFium only costs time.
type gate struct {
	fonts map[string]string // name of a font -> its encoding, over all pages
	words int
}

func newGate() *gate { return &gate{fonts: map[string]string{}} }

// doubts reports signs of wrong text on one page.
func (g *gate) doubts(p pdf.Page, text string) bool {
	g.words += len(strings.Fields(text))
	return g.doubtsFonts(p) || hasForms(p) || doubtful(text)
}

// silent reports that no page gave a word: a scan, or text that the engine did not find.
func (g *gate) silent() bool { return g.words == 0 }

// doubtsFonts looks for fonts that the engine is known to read wrong.
func (g *gate) doubtsFonts(p pdf.Page) (doubt bool) {
	defer func() {
		if recover() != nil {
			doubt = true
		}
	}()
	for _, name := range p.Fonts() {
		f := p.Font(name)
		mapped := f.V.Key("ToUnicode").Kind() == pdf.Stream
		encoding := f.V.Key("Encoding")
		sign := f.V.Key("BaseFont").Name() + "/" + encoding.String()
		if seen, ok := g.fonts[name]; ok && seen != sign {
			return true
		}
		g.fonts[name] = sign
		switch {
		case f.V.Key("Subtype").Name() == "Type0" && (!mapped || encoding.Name() != "Identity-H"),
			f.V.Key("Subtype").Name() == "Type3",
			encoding.Kind() == pdf.Dict, // Differences: they win over ToUnicode there
			mapped && encoding.Kind() == pdf.Name && f.V.Key("Subtype").Name() != "Type0":
			return true
		}
	}
	return false
}

// hasForms reports content that the engine does not look into.
func hasForms(p pdf.Page) (found bool) {
	defer func() {
		if recover() != nil {
			found = true
		}
	}()
	objects := p.Resources().Key("XObject")
	for _, name := range objects.Keys() {
		if objects.Key(name).Key("Subtype").Name() == "Form" {
			return true
		}
	}
	return p.V.Key("Annots").Len() > 0
}

// The bounds of doubt, from the corpus.
const (
	brokenShare  = 0.03 // of characters without meaning
	longestWord  = 15   // mean length of a Latin word
	fewestSpaces = 0.08 // of Latin text
	fewestRunes  = 40   // below it a text says too little to be judged by its spaces
)

// doubtful judges a page's text by itself.
func doubtful(text string) bool {
	var all, broken, latin, spaces, rtl int
	for _, r := range text {
		all++
		switch {
		case r == utf8.RuneError || unicode.Is(unicode.Co, r) || unicode.IsControl(r) && !unicode.IsSpace(r):
			broken++
		case unicode.IsSpace(r):
			spaces++
		case unicode.In(r, unicode.Hebrew, unicode.Arabic):
			rtl++
		case unicode.Is(unicode.Latin, r):
			latin++
		}
	}
	if all == 0 {
		return false // an empty page; a file of nothing else is silent
	}
	words := max(len(strings.Fields(text)), 1)
	switch {
	case float64(broken) > brokenShare*float64(all), rtl > 0:
		return true
	case all < fewestRunes, latin*2 < all:
		return all < fewestRunes && spaces == 0 && latin > longestWord
	}
	return float64(spaces) < fewestSpaces*float64(all) || latin > longestWord*words
}
