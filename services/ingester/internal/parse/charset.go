package parse

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/weir-project/weir/pkg/messages"
)

// decoded is the text of a text file.
type decoded struct {
	text     string
	charset  string // as decoded, in the IANA spelling
	warnings []string
	weak     bool // the charset is a guess that may be wrong
}

// decode gives the text of a text file. Best evidence first: a byte order mark; valid UTF-8 with
// multi-byte runs, because no other charset looks like it by accident; the declared charset (any WHATWG
// or IANA label) if the bytes are valid in it; the pattern of zeros of UTF-16; UTF-8 with few faults;
// what the bytes look like. It fails when nothing is accepted.
func decode(data []byte, declared string) (decoded, error) {
	declared = strings.ToLower(strings.TrimSpace(declared))
	if enc, name, cut := byteOrderMark(data); enc != nil {
		text, _ := lenient(enc, data[cut:], name)
		return checked(decoded{text: text, charset: name})
	}
	enc, name := lookupCharset(declared)
	if enc == nil && bytes.Contains(data, []byte("\x1b$B")) && ascii(data) {
		enc, name = lookupCharset("iso-2022-jp")
	}
	if utf8.Valid(data) && !escapes(data, name) {
		if text := string(trimUTF8Mark(data)); !looksBinary(text) {
			return valid(text, declared, name), nil
		}
	}
	if enc != nil {
		if text, ok := strict(enc, name, data); ok {
			return decoded{text: text, charset: name}, nil
		}
	}
	d, err := undeclared(data)
	if err != nil {
		if e, ok := messages.AsError(err); ok && declared != "" && e.Code == messages.CodeInvalidEncoding {
			e.Message += fmt.Sprintf(" (declared: %s)", clip(declared, 40))
		}
		return d, err
	}
	if declared != "" && !strings.EqualFold(name, d.charset) {
		d.warnings = append(d.warnings, fmt.Sprintf("the content is %s, not the declared charset", d.charset))
	}
	return d, nil
}

func valid(text, declared, name string) decoded {
	d := decoded{text: text, charset: "UTF-8"}
	if declared != "" && name != "UTF-8" && !ascii(text) {
		d.warnings = []string{"the content is UTF-8, not the declared charset"}
	}
	return d
}

// undeclared decides by the bytes alone.
func undeclared(data []byte) (decoded, error) {
	if enc, name := zeroPattern(data); enc != nil {
		text, _ := lenient(enc, data, name)
		return checked(decoded{text: text, charset: name})
	}
	runs, faults, bad := utf8Faults(data)
	if runs > 0 && (faults*50 <= runs || faults == 1 && cutTail(data)) {
		return repaired(data, faults), nil
	}
	if looksBinary(string(data)) {
		return decoded{}, messages.Errorf(messages.CodeUnsupportedMediaType, "the content is binary, not text")
	}
	g := guessCharset(data)
	if g.enc == nil && bad*200 <= len(data) {
		return repaired(data, faults), nil
	}
	if g.enc == nil {
		_, at := firstFault(data)
		return decoded{}, messages.Errorf(messages.CodeInvalidEncoding,
			"the text is not valid UTF-8 at byte %d and looks like no other charset; declare the charset", at)
	}
	text, faults := lenient(g.enc, data, g.name)
	d := decoded{text: text, charset: g.name, weak: g.weak}
	if g.weak {
		d.warnings = append(d.warnings, "the charset was guessed as "+g.name+"; declare it if the text reads wrong")
	}
	if faults > 0 {
		d.warnings = append(d.warnings, fmt.Sprintf("%d places are not valid %s and were replaced", faults, g.name))
	}
	return checked(d)
}

// repaired is text in UTF-8 but for some places.
func repaired(data []byte, faults int) decoded {
	text := strings.ToValidUTF8(string(trimUTF8Mark(data)), "\ufffd")
	warning := fmt.Sprintf("%d places are not valid UTF-8 and were replaced", faults)
	return decoded{text: text, charset: "UTF-8", warnings: []string{warning}}
}

// checked refuses text that came out mostly as replacement characters.
func checked(d decoded) (decoded, error) {
	bad := strings.Count(d.text, "\ufffd")
	if bad > 2 && bad*200 > utf8.RuneCountInString(d.text) {
		return d, messages.Errorf(messages.CodeInvalidEncoding, "the text is not valid %s", d.charset)
	}
	return d, nil
}

// lookupCharset gives a charset by any label, nil when it is unknown or not declared. The names GBK and
// GB2312 are read as GB18030, which holds them.
func lookupCharset(label string) (encoding.Encoding, string) {
	switch strings.ReplaceAll(label, "_", "-") {
	case "":
		return nil, ""
	case "us-ascii", "ascii": // the index reads it as windows-1252
		return nil, "UTF-8"
	case "gbk", "gb2312", "cp936", "x-gbk":
		enc, _ := htmlindex.Get("gb18030")
		return enc, "GBK"
	case "cp932", "ms932", "windows-932":
		label = "shift_jis"
	case "cp949", "ms949", "uhc":
		label = "euc-kr"
	case "utf-32", "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "UTF-32LE"
	case "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "UTF-32BE"
	}
	if enc, err := htmlindex.Get(label); err == nil {
		return enc, charsetName(enc)
	}
	if enc, err := ianaindex.IANA.Encoding(label); err == nil && enc != nil {
		return enc, charsetName(enc)
	}
	return nil, ""
}

// charsetName is the IANA spelling.
func charsetName(enc encoding.Encoding) string {
	if name, err := ianaindex.MIME.Name(enc); err == nil && name != "" {
		return name
	}
	if name, err := htmlindex.Name(enc); err == nil {
		return name
	}
	return "unknown"
}

// strict decodes bytes that must be valid; a character cut off at the end is left out.
func strict(enc encoding.Encoding, name string, data []byte) (string, bool) {
	if strings.HasPrefix(name, "UTF-16") && ascii(data) && bytes.IndexByte(data, 0) < 0 {
		return "", false // the declaration cannot be true
	}
	text, faults := lenient(enc, data, name)
	if faults == 0 && looksBinary(text) {
		return "", false
	}
	return text, faults == 0
}

// lenient decodes and counts what was not valid. A fault in the last bytes is a cut tail and no fault.
func lenient(enc encoding.Encoding, data []byte, name string) (string, int) {
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return string(out), 1
	}
	text := strings.TrimSuffix(string(out), "\ufffd")
	faults := strings.Count(text, "\ufffd")
	if name == "GB18030" || name == "GBK" || strings.HasPrefix(name, "UTF") { // these can write U+FFFD itself
		faults -= bytes.Count(data, replacementIn(name))
	}
	return text, max(faults, 0)
}

func replacementIn(name string) []byte {
	switch name {
	case "UTF-16LE":
		return []byte("\xfd\xff")
	case "UTF-16BE":
		return []byte("\xff\xfd")
	case "GB18030", "GBK":
		return []byte("\x84\x31\xa4\x37")
	}
	return []byte("\xef\xbf\xbd")
}

// clip shortens text from outside for a message and takes its control characters out.
func clip(text string, most int) string {
	text = strings.ReplaceAll(normalise(text), "\n", " ")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// looksBinary reports that decoded text is no text: more than one character in a hundred is a control
// character no text file uses, and more than a stray few.
func looksBinary(text string) bool {
	const window, few = 64 << 10, 8
	if len(text) > window {
		text = text[:window]
	}
	controls := 0
	for i := odd(text, 0); i < len(text); i = odd(text, i+1) {
		switch c := text[i]; {
		case c >= ' ' && c != 0x7f, c == '\t', c == '\n', c == '\r', c == '\f', c == '\v', c == '\b', c == 0x1b:
		default:
			controls++
		}
	}
	return controls > few && controls*100 > len(text) || controls > 0 && controls*2 > len(text)
}
