package parse

import (
	"bytes"
	"unicode"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utf16 "golang.org/x/text/encoding/unicode"
)

// guess is the charset that bytes look like; enc is nil when they look like none.
type guess struct {
	name string
	enc  encoding.Encoding
	weak bool // another charset fits nearly as well, or this one not very well
}

// candidate is a charset with the characters that texts in it use.
type candidate struct {
	name string
	enc  encoding.Encoding
	// common characters weigh 1, others of script weigh rest, all else counts against the charset.
	common string
	script []*unicode.RangeTable
	rest   float64
	prior  float64 // added: charsets that contain another one, or that are met more often
	wide   bool    // more bytes than one a character
}

const (
	guessSample = 64 << 10 // bytes looked at
	guessAccept = 0.45     // least score of a charset, of at most about 1
	guessSure   = 0.62
	guessMargin = 0.06
)

func candidates() []candidate {
	han := []*unicode.RangeTable{unicode.Han}
	cyrillic, latin := []*unicode.RangeTable{unicode.Cyrillic}, []*unicode.RangeTable{unicode.Latin}
	kana := append([]*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}, han...)
	return []candidate{
		{name: "GB18030", enc: simplifiedchinese.GB18030, common: commonSimplified, script: han, rest: 0.35, prior: 0.08, wide: true},
		{name: "Big5", enc: traditionalchinese.Big5, common: commonTraditional, script: han, rest: 0.35, prior: 0.08, wide: true},
		{name: "Shift_JIS", enc: japanese.ShiftJIS, common: commonJapanese, script: kana, rest: 0.35, prior: 0.08, wide: true},
		{name: "EUC-JP", enc: japanese.EUCJP, common: commonJapanese, script: kana, rest: 0.35, prior: 0.08, wide: true},
		{name: "EUC-KR", enc: korean.EUCKR, common: commonKorean, script: []*unicode.RangeTable{unicode.Hangul}, rest: 0.4, prior: 0.08, wide: true},
		{name: "windows-1251", enc: charmap.Windows1251, common: commonCyrillic, script: cyrillic, rest: 0.3, prior: 0.11},
		{name: "KOI8-R", enc: charmap.KOI8R, common: commonCyrillic, script: cyrillic, rest: 0.3, prior: 0.1},
		{name: "KOI8-U", enc: charmap.KOI8U, common: commonCyrillic, script: cyrillic, rest: 0.3, prior: 0.09},
		{name: "IBM866", enc: charmap.CodePage866, common: commonCyrillic, script: cyrillic, rest: 0.3, prior: 0.09},
		{name: "ISO-8859-5", enc: charmap.ISO8859_5, common: commonCyrillic, script: cyrillic, rest: 0.3, prior: 0.09},
		{name: "windows-1252", enc: charmap.Windows1252, common: commonWestern, script: latin, rest: 0.3, prior: 0.05},
		{name: "windows-1250", enc: charmap.Windows1250, common: commonCentral, script: latin, rest: 0.2},
		{name: "ISO-8859-2", enc: charmap.ISO8859_2, common: commonCentral, script: latin, rest: 0.2, prior: -0.01},
		{name: "windows-1254", enc: charmap.Windows1254, common: commonTurkish, script: latin, rest: 0.2},
		{name: "windows-1257", enc: charmap.Windows1257, common: commonBaltic, script: latin, rest: 0.2, prior: -0.02},
		{name: "windows-1253", enc: charmap.Windows1253, common: commonGreek, script: []*unicode.RangeTable{unicode.Greek}, rest: 0.3, prior: 0.1},
		{name: "ISO-8859-7", enc: charmap.ISO8859_7, common: commonGreek, script: []*unicode.RangeTable{unicode.Greek}, rest: 0.3, prior: 0.09},
		{name: "windows-1255", enc: charmap.Windows1255, common: commonHebrew, script: []*unicode.RangeTable{unicode.Hebrew}, rest: 0.3, prior: 0.1},
		{name: "windows-1256", enc: charmap.Windows1256, common: commonArabic, script: []*unicode.RangeTable{unicode.Arabic}, rest: 0.3, prior: 0.1},
		{name: "ISO-8859-6", enc: charmap.ISO8859_6, common: commonArabic, script: []*unicode.RangeTable{unicode.Arabic}, rest: 0.3, prior: 0.09},
		{name: "windows-874", enc: charmap.Windows874, common: commonThai, script: []*unicode.RangeTable{unicode.Thai}, rest: 0.3},
	}
}

// guessCharset decodes a sample in every candidate and takes the one whose characters make most sense.
func guessCharset(data []byte) guess {
	sample := sampleOf(data)
	all := candidates()
	scores, texts := make([]float64, len(all)), make([][]byte, len(all))
	found := 0
	for i, c := range all {
		scores[i], texts[i] = c.score(sample)
		if scores[i] > scores[found] {
			found = i
		}
	}
	best := scores[found]
	if best < guessAccept {
		return guess{}
	}
	g := guess{name: all[found].name, enc: all[found].enc, weak: best < guessSure}
	if c := all[found]; !c.wide && c.script[0] != unicode.Latin && distinct(texts[found]) < 3 {
		g.weak = true
	}
	for i := range all { // another charset that reads the same is no doubt
		g.weak = g.weak || best-scores[i] < guessMargin && !bytes.Equal(texts[i], texts[found])
	}
	if g.name == "GB18030" && !fourByte(data) {
		g.name = "GBK" // what it is called when nothing is outside of it
	}
	return g
}

// guessUTF16 recognises UTF-16 of East Asian text without a mark, where zeros are rare: only one order of
// bytes gives common characters.
func guessUTF16(data []byte) (encoding.Encoding, string) {
	sample := data[:min(len(data), guessSample)&^1]
	best, found := 0.55, candidate{}
	for _, order := range []struct {
		name string
		end  utf16.Endianness
	}{{"UTF-16LE", utf16.LittleEndian}, {"UTF-16BE", utf16.BigEndian}} {
		for _, language := range candidates()[:5] {
			language.name, language.enc = order.name, utf16.UTF16(order.end, utf16.IgnoreBOM)
			if score, _ := language.score(sample); score > best {
				best, found = score, language
			}
		}
	}
	return found.enc, found.name
}

// sampleOf takes the lines with other bytes than ASCII, from the beginning, the middle and the end.
func sampleOf(data []byte) []byte {
	if len(data) <= guessSample {
		return data
	}
	out := make([]byte, 0, guessSample+1024)
	for _, from := range []int{0, len(data) / 2, len(data) * 3 / 4} {
		part := data[from:]
		if at := bytes.IndexByte(part, '\n'); from > 0 && at >= 0 && at < guessSample {
			part = part[at+1:]
		}
		budget := guessSample / 3
		for budget > 0 && len(part) > 0 {
			l := part
			if at := bytes.IndexByte(part, '\n'); at >= 0 {
				l = part[:at+1]
			}
			part = part[len(l):]
			if !ascii(l) {
				l = l[:min(len(l), budget)]
				out = append(out, l...)
				budget -= len(l)
			}
		}
	}
	return out
}

// fourByte reports a four-byte character of GB18030.
func fourByte(data []byte) bool {
	for i := 0; i+3 < len(data); {
		switch {
		case data[i] < 0x81:
			i++
		case data[i+1] >= '0' && data[i+1] <= '9' && data[i+2] >= 0x81 && data[i+3] >= '0' && data[i+3] <= '9':
			return true
		default:
			i += 2
		}
	}
	return false
}
