package parse

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
)

func rtfFormat() format {
	return format{
		name:       "rtf",
		mediaTypes: []string{"application/rtf", "text/rtf", "application/x-rtf"},
		extensions: []string{".rtf"},
		binary:     true, // charsets change inside
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff: func(data []byte) bool {
			return bytes.HasPrefix(bytes.TrimLeft(trimUTF8Mark(data[:min(len(data), 64)]), " \t\r\n"), []byte(`{\rtf`))
		},
		parse: parseRTF,
	}
}

// parseRTF reads a file group by group on a stack of its own. Deleted and hidden text, comments and
// pictures are left out; footnotes stand behind their paragraph; each header and footer is read once,
// at the end.
func parseRTF(ctx context.Context, s source, b *builder) error {
	r := &rtfReader{
		ctx: ctx, b: b, limits: s.limits, data: s.data,
		fonts: map[int]int{}, styles: map[int]rtfStyle{}, once: map[string]bool{}, codepage: 1252,
	}
	r.now.skip, r.now.page = 1, r.codepage
	if err := r.read(); err != nil {
		return err
	}
	if len(r.row) > 0 { // a row that never ended
		r.endCell()
		r.endRow()
	}
	if err := r.endParagraph(); err != nil {
		return err
	}
	if err := r.endTable(); err != nil {
		return err
	}
	if err := r.flushRun(); err != nil {
		return err
	}
	if r.depth() > 0 {
		b.warn("the RTF ends too early; what came before was read")
	}
	b.path = headingPath{}
	for _, text := range r.furniture {
		if err := b.add(part{kind: KindParagraph, text: text}); err != nil {
			return err
		}
	}
	return nil
}

// rtfGroup is what a group inherits and what ends with it.
type rtfGroup struct {
	drop   bool // not text of the document
	hidden bool // hidden or deleted characters
	skip   int  // characters to pass over behind \u
	page   int  // code page of the font
	dest   rtfDest
}

// rtfDest is where the text of a group goes.
type rtfDest byte

const (
	destBody = rtfDest(iota)
	destFonts
	destStyles
	destTitle
	destFurniture
	destNote
	destMark // the visible number or bullet of a list item
)

type rtfReader struct {
	ctx    context.Context
	b      *builder
	limits Limits
	data   []byte
	at     int

	now   rtfGroup
	stack []rtfGroup
	star  bool // \* was read: a group that we do not know is to be ignored

	codepage int
	fonts    map[int]int // code page by font; 0: that of the file
	font     int         // being defined
	styles   map[int]rtfStyle
	style    int // being defined

	raw    []byte // bytes of the current code page, not yet decoded
	passed int    // characters left to pass over
	high   rune   // first half of a surrogate pair

	text      strings.Builder // of the open paragraph
	side      strings.Builder // of a destination other than the body
	paragraph rtfParagraph
	notes     []string
	furniture []string
	once      map[string]bool
	table     [][]string
	row       []string
	run       wordRun
	size      int
}

type rtfStyle struct {
	level int // of a heading
	code  bool
	title bool
}

type rtfParagraph struct {
	style   int
	outline int // heading level from 1 by direct formatting
	list    bool
	level   int
	table   bool
	mark    string
}

func (r *rtfReader) depth() int { return len(r.stack) }

const rtfDepth = 1000

func (r *rtfReader) read() error {
	for count := 0; r.at < len(r.data); count++ {
		if count%4096 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		c := r.data[r.at]
		r.at++
		var err error
		switch c {
		case '{':
			err = r.open()
		case '}':
			err = r.close()
		case '\\':
			err = r.control()
		case '\r', '\n', 0:
		default:
			r.byteOf(c)
		}
		if err != nil {
			return err
		}
		if r.size > r.limits.TextBytes {
			return limitError("extracted text", r.limits.TextBytes, "bytes")
		}
		if len(r.stack) == 0 && c == '}' { // what follows the outermost group is no RTF
			return nil
		}
	}
	return nil
}

func (r *rtfReader) open() error {
	r.decode()
	if len(r.stack) >= r.limits.depth(rtfDepth) {
		return limitError("nesting of RTF", r.limits.depth(rtfDepth), "levels")
	}
	r.stack = append(r.stack, r.now)
	r.star = false
	return nil
}

func (r *rtfReader) close() error {
	r.decode()
	n := len(r.stack)
	if n == 0 {
		return damaged("the RTF closes a group that is not open")
	}
	before := r.now
	r.now = r.stack[n-1]
	r.stack = r.stack[:n-1]
	if before.dest != r.now.dest {
		r.leave(before.dest)
	}
	return nil
}

// leave takes the text of a destination that ended.
func (r *rtfReader) leave(dest rtfDest) {
	text := r.side.String()
	if dest == destBody {
		return
	}
	r.side.Reset()
	switch dest {
	case destTitle:
		r.b.title = collapse(text)
	case destNote:
		r.notes = append(r.notes, text)
	case destMark:
		r.paragraph.mark = collapse(text)
		r.paragraph.list = true
	case destFurniture:
		if key := collapse(text); hasWord(key) && !r.once[key] {
			r.once[key] = true
			r.furniture = append(r.furniture, text)
		}
	case destStyles:
		r.nameStyle(text)
	}
}

// nameStyle keeps what the name of a style says; the name ends with a semicolon.
func (r *rtfReader) nameStyle(text string) {
	for _, name := range strings.Split(text, ";") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		s := r.styles[r.style]
		if s.level == 0 {
			s.level = nameLevel(name)
		}
		s.title = s.title || name == "title"
		s.code = s.code || codeStyle(name)
		r.styles[r.style] = s
	}
}

// byteOf takes one byte of text in the current code page.
func (r *rtfReader) byteOf(c byte) {
	if r.passed > 0 {
		r.passed--
		return
	}
	if r.now.drop || r.now.hidden {
		return
	}
	r.raw = append(r.raw, c)
}

// decode turns the bytes gathered so far into text.
func (r *rtfReader) decode() {
	if len(r.raw) == 0 {
		return
	}
	raw := r.raw
	r.raw = r.raw[:0]
	text := string(raw)
	if !ascii(raw) {
		if decoded, err := codePage(r.now.page).NewDecoder().Bytes(raw); err == nil {
			text = string(decoded)
		}
	}
	r.write(text)
}

// write appends decoded text where the group's text goes.
func (r *rtfReader) write(text string) {
	if r.now.drop || r.now.hidden {
		return
	}
	r.size += len(text)
	if r.now.dest == destBody {
		r.text.WriteString(text)
		return
	}
	if r.now.dest != destFonts {
		r.side.WriteString(text)
	}
	if r.now.dest == destStyles && strings.HasSuffix(text, ";") {
		r.nameStyle(r.side.String())
		r.side.Reset()
	}
}

// unicode takes \u: a UTF-16 unit, signed. The characters behind it are for programs that do not know it.
func (r *rtfReader) unicode(unit int) {
	r.decode()
	c := rune(uint16(unit))
	switch {
	case utf16.IsSurrogate(c) && r.high == 0:
		r.high = c
	case r.high != 0:
		c = utf16.DecodeRune(r.high, c)
		r.high = 0
		fallthrough
	default:
		r.write(string(c))
	}
	r.passed = r.now.skip
}

func codePage(page int) encoding.Encoding {
	label := map[int]string{
		932: "shift_jis", 936: "gb18030", 949: "euc-kr", 950: "big5", 874: "windows-874", 866: "ibm866", 10000: "macintosh",
		1250: "windows-1250", 1251: "windows-1251", 1253: "windows-1253", 1254: "windows-1254", 1255: "windows-1255",
		1256: "windows-1256", 1257: "windows-1257", 1258: "windows-1258", 65001: "utf-8", 437: "ibm437", 850: "ibm850", 852: "ibm852",
		28591: "iso-8859-1", 28592: "iso-8859-2", 54936: "gb18030",
	}[page]
	enc, _ := lookupCharset(label)
	if enc == nil {
		enc, _ = lookupCharset("windows-1252")
	}
	return enc
}

// fontPage is the code page of a font's charset; 0: that of the file.
func fontPage(charset int) int {
	return map[int]int{
		77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257,
		204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
	}[charset]
}
