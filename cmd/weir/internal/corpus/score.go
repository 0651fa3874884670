package corpus

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-project/weir/pkg/messages"
)

// Plain makes texts comparable: NFKC, no soft hyphens, zero-width or direction marks, white space as one
// space and none between two CJK characters.
func Plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == 0xad, r == 0xfeff, r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	var out strings.Builder
	before := rune(0)
	for word := range strings.FieldsSeq(text) {
		runes := []rune(word)
		if before != 0 && !(cjk(before) && cjk(runes[0])) {
			out.WriteByte(' ')
		}
		out.WriteString(word)
		before = runes[len(runes)-1]
	}
	return out.String()
}

func cjk(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

// Score counts facts that hold.
type Score struct{ Right, All int }

func (s *Score) add(ok bool) {
	s.All++
	if ok {
		s.Right++
	}
}

// Found is what the services gave back of one file.
type Found struct {
	Title  string
	Chunks []messages.ChunkInfo                          // in order
	Search func(phrase string) []messages.RetrievedChunk // of this file
}

// Verdict is what holds of a file's expectation.
type Verdict struct {
	Text   Score // phrases that must and must not be there
	Places Score // where and order, on retrieved chunks
	Misses []string
}

// Judge holds what was found against what is expected.
func Judge(e Expectation, f Found) Verdict {
	var v Verdict
	var all strings.Builder
	all.WriteString(f.Title)
	for _, c := range f.Chunks {
		all.WriteString("\n" + c.Content)
	}
	text := Plain(all.String())
	for _, phrase := range e.Must {
		v.Text.add(v.miss(strings.Contains(text, Plain(phrase)), "not there: %q", phrase))
	}
	for _, phrase := range e.MustNot {
		v.Text.add(v.miss(!strings.Contains(text, Plain(phrase)), "is there: %q", phrase))
	}
	for _, fact := range e.Where {
		v.Places.add(v.miss(stands(fact, f), "not at its place: %+v", fact))
	}
	for _, pair := range e.Order {
		a, b := strings.Index(text, Plain(pair[0])), strings.Index(text, Plain(pair[1]))
		v.Places.add(v.miss(a >= 0 && b >= 0 && a < b, "not in this order: %q", pair))
	}
	return v
}

func (v *Verdict) miss(ok bool, format string, args ...any) bool {
	if !ok {
		v.Misses = append(v.Misses, fmt.Sprintf(format, args...))
	}
	return ok
}

// stands looks for a retrieved chunk that has a fact's phrase at its place.
func stands(fact Fact, f Found) bool {
	phrase := Plain(fact.Phrase)
	return slices.ContainsFunc(f.Search(fact.Phrase), func(c messages.RetrievedChunk) bool {
		return strings.Contains(Plain(c.Content), phrase) && at(fact, c)
	})
}

func at(fact Fact, c messages.RetrievedChunk) bool {
	switch {
	case fact.Page != 0 && (fact.Page < c.PageFrom || fact.Page > c.PageTo),
		fact.Slide != 0 && fact.Slide != c.Slide,
		fact.Sheet != "" && Plain(fact.Sheet) != Plain(c.Sheet),
		fact.Chapter != "" && Plain(fact.Chapter) != Plain(c.Chapter),
		fact.Attachment != "" && Plain(fact.Attachment) != Plain(c.Attachment),
		fact.Block != "" && !slices.Contains(c.Kinds, fact.Block):
		return false
	}
	return under(fact.Heading, c)
}

// under reports that the given titles are the end of the chunk's path. A chunk that begins with a heading
// may have it in its path or not.
func under(titles []string, c messages.RetrievedChunk) bool {
	if len(titles) > len(c.HeadingPath) {
		return false
	}
	path := c.HeadingPath[len(c.HeadingPath)-len(titles):]
	for i := range titles {
		if Plain(titles[i]) != Plain(path[i]) {
			return false
		}
	}
	return true
}
