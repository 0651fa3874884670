package pdf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Levels gives the heading level of each block, 0 for text. Headings are the blocks that the outline names
// on their page; without an outline short blocks set larger than the body, and bold lines that are
// numbered or stand above text that is not bold. Levels made up so are at most three deep.
func Levels(blocks []Block, outline []Entry) []int {
	h := newHeadings(blocks, outline)
	out := make([]int, len(blocks))
	for i, b := range blocks {
		if out[i] = h.level(b); out[i] == 0 && i+1 < len(blocks) {
			out[i] = h.above(b, blocks[i+1])
		}
	}
	return out
}

// headings is what a document's headings look like.
type headings struct {
	outline map[int]map[string]int // page -> title -> level
	body    float64
	larger  []float64 // sizes of heading lines, largest first, at most three
	bold    bool      // the body itself is bold
}

const (
	headingRatio = 1.15 // to the body size
	headingRunes = 120  // a heading is short
	headingLines = 2
	deepestLevel = 3 // of those made up from sizes
)

func newHeadings(blocks []Block, outline []Entry) *headings {
	h := &headings{outline: map[int]map[string]int{}}
	for _, e := range outline {
		if e.Page > 0 {
			if h.outline[e.Page] == nil {
				h.outline[e.Page] = map[string]int{}
			}
			h.outline[e.Page][plainTitle(e.Title)] = e.Level
		}
	}
	found := 0
	for _, b := range blocks {
		if _, ok := h.named(b); ok {
			found++
		}
	}
	if found < 2 { // an outline that names other things than the text has
		h.outline = nil
		h.measure(blocks)
	}
	return h
}

func plainTitle(title string) string {
	return strings.ToLower(strings.Join(strings.Fields(title), " "))
}

func (h *headings) named(b Block) (level int, ok bool) {
	if titles := h.outline[b.Page]; titles != nil && len(b.Lines) <= headingLines+1 {
		level, ok = titles[plainTitle(b.Text())]
	}
	return level, ok
}

// measure takes the size most characters have as the body, and the three commonest larger ones of short
// blocks as heading levels.
func (h *headings) measure(blocks []Block) {
	runes, heads, bold, all := map[float64]int{}, map[float64]int{}, 0, 0
	for _, b := range blocks {
		for _, l := range b.Lines {
			n := utf8.RuneCountInString(l.Text)
			runes[rounded(l.Size)] += n
			all += n
			if l.Bold {
				bold += n
			}
		}
		if short(b) {
			heads[rounded(b.Lines[0].Size)]++
		}
	}
	h.bold = bold*2 > all
	for size, n := range runes {
		if n > runes[h.body] || n == runes[h.body] && size < h.body {
			h.body = size
		}
	}
	for size := range heads {
		if size > h.body*headingRatio && h.body > 0 {
			h.larger = append(h.larger, size)
		}
	}
	slices.SortFunc(h.larger, func(a, b float64) int { return (heads[b]-heads[a])*1000 + int(b-a) })
	h.larger = h.larger[:min(len(h.larger), deepestLevel)]
	slices.SortFunc(h.larger, func(a, b float64) int { return int((b - a) * 10) })
}

func rounded(size float64) float64 { return float64(int(size*2+0.5)) / 2 }

func short(b Block) bool {
	text := b.Text()
	return len(b.Lines) <= headingLines && utf8.RuneCountInString(text) <= headingRunes && strings.IndexFunc(text, unicode.IsLetter) >= 0
}

// above is the level of a bold line that stands alone above running text; 0 when it does not.
func (h *headings) above(b, next Block) int {
	const longest, most = 80, 3 // runes; words of text below a label
	text := b.Text()
	switch {
	case h.outline != nil || h.bold || !short(b) || len(b.Lines) > 1 || !b.Lines[0].Bold || utf8.RuneCountInString(text) > longest,
		strings.Contains(text, "  "), strings.ContainsAny(text[len(text)-1:], ".,;:"),
		next.Page != b.Page, next.Lines[0].Bold, len(strings.Fields(next.Text())) <= most && !wide([]rune(next.Text())[0]):
		return 0
	}
	return min(len(h.larger)+1, deepestLevel)
}

// level is the heading level of a block by itself, 0 for text.
func (h *headings) level(b Block) int {
	if h.outline != nil {
		level, _ := h.named(b)
		return level
	}
	if !short(b) {
		return 0
	}
	size := rounded(b.Lines[0].Size)
	if size > h.body*headingRatio && h.body > 0 {
		for i, s := range h.larger {
			if size >= s {
				return i + 1
			}
		}
		return max(len(h.larger), 1)
	}
	if depth := numbered(b.Text()); depth > 0 && b.Lines[0].Bold && !h.bold {
		return min(len(h.larger)+depth, deepestLevel)
	}
	return 0
}

// numbered is the depth of the number a line begins with, as in "2.1 Scope"; 0 without one.
func numbered(text string) int {
	number, rest, ok := strings.Cut(text, " ")
	number = strings.TrimSuffix(number, ".")
	first, _ := utf8.DecodeRuneInString(strings.TrimSpace(rest))
	if !ok || !unicode.IsUpper(first) && !wide(first) || strings.HasSuffix(text, ".") {
		return 0
	}
	depth := 0
	for part := range strings.SplitSeq(number, ".") {
		const longest = 2
		if part == "" || len(part) > longest || strings.Trim(part, "0123456789") != "" {
			return 0
		}
		depth++
	}
	return depth
}
