package chunk

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// context is what a chunk whose core begins at byte at of a block should be read with: the headings
// above it that are not in its text, the header of a table it begins inside, the language of a fence
// it begins inside. Headings and header take at most a quarter of the size each.
func (p *packer) context(block, at int) string {
	b := p.doc.Blocks[block]
	path := b.HeadingPath
	if b.Level > 0 && len(path) > 0 { // the chunk begins with this heading
		path = path[:len(path)-1]
	}
	parts := make([]string, 0, 2)
	if headings := p.clipLeft(path); headings != "" {
		parts = append(parts, headings)
	}
	if header := p.clipRight(strings.TrimSpace(p.header(b, at))); header != "" {
		parts = append(parts, header)
	}
	if b.Lang != "" && at > b.Start && p.counter.Count(b.Lang) <= p.size/4 {
		parts = append(parts, b.Lang)
	}
	return strings.Join(parts, "\n")
}

// header is the rows that name the columns of a table that a chunk goes on with.
func (p *packer) header(b parse.Block, at int) string {
	if b.HeaderEnd > b.Start && at >= b.HeaderEnd {
		return p.doc.Text[b.Start:b.HeaderEnd]
	}
	return b.Header
}

// contextBytes bounds each part of a context before it is counted, so that a monstrous heading or
// header costs nothing per chunk.
const contextBytes = 2048

// headingMemo keeps the last path's text: neighbouring blocks share their path.
type headingMemo struct {
	first *string
	count int
	text  string
}

// clipLeft joins titles and takes outer ones, then the left of the last one, away until they fit.
func (p *packer) clipLeft(path []string) string {
	if len(path) == 0 {
		return ""
	}
	if m := p.headings; m.first == &path[0] && m.count == len(path) {
		return m.text
	}
	key := headingMemo{first: &path[0], count: len(path)}
	for {
		key.text = tail(strings.Join(path, " > "), contextBytes)
		if len(path) == 1 || p.counter.Count(key.text) <= p.size/4 {
			break
		}
		path = path[1:]
	}
	for key.text != "" && p.counter.Count(key.text) > p.size/4 {
		key.text = tail(key.text, len(key.text)*3/4)
	}
	key.text = strings.TrimSpace(key.text)
	p.headings = key
	return key.text
}

func (p *packer) clipRight(text string) string {
	text = head(text, contextBytes)
	for text != "" && p.counter.Count(text) > p.size/4 {
		text = head(text, len(text)*3/4)
	}
	return strings.TrimSpace(text)
}

// tail is at most the last n bytes, whole runes.
func tail(text string, n int) string {
	at := max(0, len(text)-n)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

// head is at most the first n bytes, whole runes.
func head(text string, n int) string {
	if n >= len(text) {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
