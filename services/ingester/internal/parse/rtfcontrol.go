package parse

import "strconv"

// control reads what follows a backslash.
func (r *rtfReader) control() error {
	if r.at >= len(r.data) {
		return nil
	}
	c := r.data[r.at]
	if c|0x20 < 'a' || c|0x20 > 'z' {
		r.at++
		return r.symbol(c)
	}
	from := r.at
	for r.at < len(r.data) && r.data[r.at]|0x20 >= 'a' && r.data[r.at]|0x20 <= 'z' && r.at-from < 32 {
		r.at++
	}
	word := string(r.data[from:r.at])
	begin := r.at
	if r.at < len(r.data) && r.data[r.at] == '-' {
		r.at++
	}
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' && r.at-begin < 11 {
		r.at++
	}
	value, err := strconv.Atoi(string(r.data[begin:r.at]))
	given := err == nil
	if r.at < len(r.data) && r.data[r.at] == ' ' {
		r.at++
	}
	if word == "bin" {
		r.at = min(len(r.data), r.at+max(0, value))
		return nil
	}
	if r.passed > 0 && word != "u" {
		r.passed--
		return nil
	}
	return r.word(word, value, given)
}

func (r *rtfReader) symbol(c byte) error {
	switch c {
	case '\'':
		if r.at+1 < len(r.data) {
			hi, lo := hexDigit(r.data[r.at]), hexDigit(r.data[r.at+1])
			r.at += 2
			if hi >= 0 && lo >= 0 {
				r.byteOf(byte(hi<<4 | lo))
			}
		}
		return nil
	case '*':
		r.star = true
		return nil
	case '\r', '\n':
		return r.word("par", 0, false)
	}
	if r.passed > 0 {
		r.passed--
		return nil
	}
	r.decode()
	switch c {
	case '~':
		r.write("\u00a0")
	case '_':
		r.write("-")
	case '\\', '{', '}':
		r.write(string(rune(c)))
	}
	return nil
}

// word carries a control word out. Unknown ones are ignored, with their group where \* stood before.
func (r *rtfReader) word(word string, value int, given bool) error {
	r.decode()
	star := r.star
	r.star = false
	switch {
	case r.destination(word):
		return nil
	case star && word != "shpinst" && word != "ud":
		r.now.drop = true
		return nil
	}
	if text, ok := rtfText(word); ok {
		r.write(text)
		return nil
	}
	on := !given || value != 0
	switch word {
	case "u":
		r.unicode(value)
	case "uc":
		r.now.skip = max(0, min(value, 16))
	case "ansicpg":
		r.codepage, r.now.page = value, value
	case "mac":
		r.codepage, r.now.page = 10000, 10000
	case "f":
		r.useFont(value)
	case "fcharset":
		r.fonts[r.font] = fontPage(value)
	case "cpg":
		r.fonts[r.font] = value
	case "v", "deleted":
		r.now.hidden = on
	case "plain":
		r.now.hidden = false
	default:
		return r.paragraphWord(word, value)
	}
	return nil
}

func (r *rtfReader) useFont(font int) {
	if r.now.dest == destFonts {
		r.font = font
		return
	}
	r.now.page = r.codepage
	if page := r.fonts[font]; page != 0 {
		r.now.page = page
	}
}

// destination switches to another one when word names it.
func (r *rtfReader) destination(word string) bool {
	switch word {
	case "fonttbl":
		r.now.dest = destFonts
	case "stylesheet":
		r.now.dest = destStyles
	case "title":
		if r.now.dest == destBody {
			r.now.dest, r.now.drop = destTitle, false
		}
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		r.now.dest = destFurniture
	case "footnote":
		r.now.dest = destNote
	case "listtext", "pntext":
		r.now.dest = destMark
	case "info", "colortbl", "pict", "objdata", "fldinst", "themedata", "datastore", "listtable", "listoverridetable", "revtbl",
		"rsidtbl", "generator", "xmlnstbl", "annotation", "atnid", "atnauthor", "atnref", "atndate", "atrfstart", "atrfend", "bkmkstart",
		"bkmkend", "sp", "private", "nonshppict", "latentstyles", "mmathPr", "filetbl", "xe", "tc", "objclass", "objname", "pgptbl",
		"wgrffmtfilter", "falt", "panose", "keycode":
		r.now.drop = true
	default:
		return false
	}
	return true
}

// rtfText is the character that a control word stands for.
func rtfText(word string) (string, bool) {
	switch word {
	case "tab":
		return "\t", true
	case "line", "softline":
		return "\n", true
	case "emdash":
		return "—", true
	case "endash":
		return "–", true
	case "bullet":
		return "•", true
	case "lquote":
		return "‘", true
	case "rquote":
		return "’", true
	case "ldblquote":
		return "“", true
	case "rdblquote":
		return "”", true
	case "emspace", "enspace", "qmspace":
		return " ", true
	}
	return "", false
}

// paragraphWord handles what shapes paragraphs and tables.
func (r *rtfReader) paragraphWord(word string, value int) error {
	if r.now.dest == destStyles {
		return r.styleWord(word, value)
	}
	p := &r.paragraph
	switch word {
	case "par", "sect", "page":
		if r.now.dest != destBody {
			r.write("\n")
			return nil
		}
		return r.endParagraph()
	case "pard":
		*p = rtfParagraph{mark: p.mark, list: p.mark != ""}
	case "s":
		p.style = value
	case "outlinelevel":
		if value >= 0 && value < 9 {
			p.outline = value + 1
		}
	case "ls":
		p.list = true
	case "ilvl":
		p.level = max(0, min(value, 8))
	case "intbl":
		p.table = true
	case "cell":
		r.endCell()
	case "nestcell", "nestrow":
		r.write(" ")
	case "row":
		r.endRow()
	}
	return nil
}

func (r *rtfReader) styleWord(word string, value int) error {
	switch word {
	case "s", "cs", "ds", "ts":
		r.style = value
		if word != "s" {
			r.style = -1 // not of paragraphs
		}
		r.styles[r.style] = rtfStyle{}
	case "outlinelevel":
		if s := r.styles[r.style]; value >= 0 && value < 9 {
			s.level = value + 1
			r.styles[r.style] = s
		}
	}
	return nil
}
