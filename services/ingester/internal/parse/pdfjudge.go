package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/pdf"
)

// judge warns about pages without text or with damage, and refuses a file without any text.
func judge(pages []pdf.Page, ocr bool, b *builder) error {
	var silent, broken, unmapped []int
	faults := map[string]bool{}
	for _, p := range pages {
		letters := 0
		for _, l := range p.Lines {
			letters += utf8.RuneCountInString(l.Text)
		}
		if letters == 0 && len(p.Fields) == 0 {
			silent = append(silent, p.Number)
		}
		if p.Fault != "" {
			broken = append(broken, p.Number)
			faults[p.Fault] = true
		}
		if p.Unmapped*100 > 3*(letters+p.Unmapped) {
			unmapped = append(unmapped, p.Number)
		}
	}
	if len(silent) == len(pages) {
		return silentError(len(broken) > 0, len(unmapped) > 0, ocr, faults)
	}
	if len(silent) > 0 {
		b.warn("PDF page has no text: " + pageList(silent))
	}
	if len(broken) > 0 {
		b.warn(fmt.Sprintf("PDF page could not be read whole: %s (%s)", pageList(broken), oneOf(faults)))
	}
	if len(unmapped) > 0 {
		b.warn("PDF page has characters without a Unicode mapping, left out: " + pageList(unmapped))
	}
	return nil
}

func silentError(broken, unmapped, ocr bool, faults map[string]bool) error {
	switch {
	case broken:
		return damaged("no page of the PDF could be read: %s", oneOf(faults))
	case unmapped:
		return messages.Errorf(messages.CodeNoText, "the fonts of the PDF do not say which characters they show")
	case ocr:
		return messages.Errorf(messages.CodeNoText, "the PDF has no text on any page, and OCR found none")
	}
	return messages.Errorf(messages.CodeNoText, "the PDF has no text on any page; it may be a scan: submit one with a text layer, or set up OCR")
}

func oneOf(faults map[string]bool) string {
	all := make([]string, 0, len(faults))
	for f := range faults {
		all = append(all, f)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// pageList writes numbers, the first twenty of them.
func pageList(pages []int) string {
	const most = 20
	words := make([]string, 0, most)
	for _, p := range pages[:min(len(pages), most)] {
		words = append(words, strconv.Itoa(p))
	}
	out := strings.Join(words, ", ")
	if len(pages) > most {
		out += fmt.Sprintf(" and %d more", len(pages)-most)
	}
	return out
}
