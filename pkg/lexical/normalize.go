package lexical

import (
	"encoding/binary"
	"sort"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalize returns text cleaned, in NFKC and with traditional characters folded, and leaves in s how to
// get from its offsets back to those of text. ASCII without NUL is returned as it is.
func (s *scratch) normalize(text string, han *hanFolder) string {
	for i := range s.edits {
		s.edits[i].reset()
	}
	if isPlainASCII(text) {
		return text
	}
	text = s.edits[0].clean(text, s.short)
	text = s.edits[1].compose(text, s.short)
	return s.edits[2].foldHan(text, han)
}

// original translates a range of the normalised text to one of the text it was made of.
func (s *scratch) original(start, end int) (int, int) {
	for i := len(s.edits) - 1; i >= 0; i-- {
		start, end = s.edits[i].original(start, end)
	}
	return start, end
}

// isPlainASCII says whether text is ASCII without NUL.
func isPlainASCII(text string) bool {
	i := plainEights(text, 0)
	for ; i < len(text); i++ {
		if c := text[i]; c >= utf8.RuneSelf || c == 0 {
			return false
		}
	}
	return true
}

// plainEights skips ASCII without NUL from offset i of text on, eight bytes at a time, and returns the offset
// where less than eight such bytes follow.
func plainEights(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		b := binary.LittleEndian.Uint64([]byte(text[i : i+8]))
		if (b|(b-eachByte))&highBits != 0 { // a byte is not ASCII, or is NUL and was borrowed from
			return i
		}
	}
	return i
}

// edit is one pass over a text that copies most of it and replaces some places.
type edit struct {
	buf   []byte
	spans []span
	piece []byte
	done  int // how far the input has been copied to buf
}

// span says where a stretch of the output came from: byte for byte when verbatim, else as one replacement.
type span struct {
	out, in  int
	verbatim bool
}

func (e *edit) reset() {
	e.buf, e.spans, e.done = e.buf[:0], e.spans[:0], 0
}

// keep copies text up to end.
func (e *edit) keep(text string, end int) {
	if e.done >= end {
		return
	}
	if n := len(e.spans); n == 0 || !e.spans[n-1].verbatim {
		e.spans = append(e.spans, span{out: len(e.buf), in: e.done, verbatim: true})
	}
	e.buf = append(e.buf, text[e.done:end]...)
	e.done = end
}

// replaced notes that the output from out on stands for the input up to end.
func (e *edit) replaced(out, end int) {
	e.spans = append(e.spans, span{out: out, in: e.done})
	e.done = end
}

// finish returns the output; text itself when nothing was replaced.
func (e *edit) finish(text string) string {
	if e.done == 0 {
		return text
	}
	e.keep(text, len(text))
	e.spans = append(e.spans, span{out: len(e.buf), in: len(text)})
	return string(e.buf)
}

func (e *edit) original(start, end int) (int, int) {
	if len(e.spans) == 0 {
		return start, end
	}
	first := e.find(start)
	sp := e.spans[first]
	from := sp.in
	if sp.verbatim {
		from += start - sp.out
	}
	last := e.find(end - 1)
	if sp = e.spans[last]; sp.verbatim {
		return from, sp.in + end - sp.out
	}
	return from, e.spans[last+1].in
}

// find returns the index of the span that holds the byte at offset out.
func (e *edit) find(out int) int {
	return sort.Search(len(e.spans)-1, func(i int) bool { return e.spans[i+1].out > out })
}

// clean removes invalid UTF-8, NUL and invisible characters and makes apostrophes, hyphens and full-width
// forms ASCII.
func (e *edit) clean(text string, short *shortcuts) string {
	for i := short.quietEnd(text, 0); i < len(text); i = short.quietEnd(text, i) {
		r, n := utf8.DecodeRuneInString(text[i:])
		to, ok := cleaned(r, n)
		if !ok {
			e.keep(text, i)
			out := len(e.buf)
			if to != 0 {
				e.buf = append(e.buf, to)
			}
			e.replaced(out, i+n)
		}
		i += n
	}
	return e.finish(text)
}

// cleaned says what becomes of rune r of n bytes: it stays, or an ASCII character replaces it (0 for none).
func cleaned(r rune, n int) (to byte, stays bool) {
	switch {
	case r == 0, r == utf8.RuneError && n == 1:
		return 0, false
	case r == 0x2BC, r == 0x2018, r == 0x2019, r == 0x201B:
		return '\'', false
	case r >= 0xFF01 && r <= 0xFF5E: // NFKC would do the same, at ten times the price
		return byte(r - 0xFF01 + '!'), false
	case r >= 0x2010 && r <= 0x2013, r == 0x2212: // an em dash separates, so it stays what it is
		return '-', false
	}
	return 0, !invisible(r)
}

// invisible says whether r shows nothing: soft hyphen, joiners, direction marks, byte order mark, variation
// selectors, tags.
func invisible(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x61C, r >= 0x180B && r <= 0x180F:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF, r >= 0xFFF9 && r <= 0xFFFB:
		return true
	}
	return r >= 0xE0000 && r <= 0xE0FFF
}

// compose brings text, which is valid UTF-8, into NFKC.
func (e *edit) compose(text string, short *shortcuts) string {
	for i := 0; ; {
		i = short.composedEnd(text, i)
		if i >= len(text) {
			return e.finish(text)
		}
		n := norm.NFKC.NextBoundaryInString(text[i:], true)
		if n <= 0 {
			n = len(text) - i
		}
		e.keep(text, i)
		e.piece = norm.NFKC.AppendString(e.piece[:0], text[i:i+n])
		out := len(e.buf)
		e.buf = append(e.buf, e.piece...)
		e.replaced(out, i+n)
		i += n
	}
}

// foldHan makes traditional Chinese characters simplified ones.
func (e *edit) foldHan(text string, han *hanFolder) string {
	for i := 0; i < len(text); {
		if text[i] < 0xE3 || text[i] > 0xE9 { // no character below U+3000 or from U+A000 on has another form
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if to := han.fold(r); to != r {
			e.swap(text, i, n, to)
		}
		i += n
	}
	return e.finish(text)
}

// swap replaces the rune of n bytes at offset i by the rune to.
func (e *edit) swap(text string, i, n int, to rune) {
	if utf8.RuneLen(to) == n {
		e.keep(text, i+n)
		utf8.AppendRune(e.buf[:len(e.buf)-n], to)
		return
	}
	e.keep(text, i)
	out := len(e.buf)
	e.buf = utf8.AppendRune(e.buf, to)
	e.replaced(out, i+n)
}
