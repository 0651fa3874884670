package pdfworker

import (
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

// font decodes and measures strings of one font of a page.
type font struct {
	encoder   pdf.TextEncoding
	charset   encoding.Encoding // of predefined CMaps whose codes are a charset; nil otherwise
	composite bool
	widths    map[int]float64 // thousandths of the size, by code
	standard  float64         // width of other codes
}

func newFont(v pdf.Value) *font {
	name := v.Key("Encoding").Name()
	f := &font{charset: charsetOf(name), composite: v.Key("Subtype").Name() == "Type0"}
	if f.charset == nil {
		f.encoder = (&pdf.Font{V: v}).Encoder()
	}
	if f.composite {
		descendant := v.Key("DescendantFonts").Index(0)
		f.standard = floatOr(descendant.Key("DW"), 1000)
		f.widths = compositeWidths(descendant.Key("W"))
		return f
	}
	f.standard = floatOr(v.Key("FontDescriptor").Key("MissingWidth"), 500)
	f.widths = simpleWidths(v)
	return f
}

// charsetOf knows the predefined CMaps whose codes are those of a charset. The library reads only one.
func charsetOf(cmap string) encoding.Encoding {
	name := strings.TrimSuffix(strings.TrimSuffix(cmap, "-H"), "-V")
	switch name {
	case "GB-EUC", "GBK-EUC", "GBKp-EUC", "GBK2K":
		return simplifiedchinese.GB18030
	case "B5pc", "ETen-B5", "ETenms-B5", "HKscs-B5":
		return traditionalchinese.Big5
	case "90ms-RKSJ", "90msp-RKSJ", "83pv-RKSJ", "90pv-RKSJ", "Add-RKSJ", "Ext-RKSJ":
		return japanese.ShiftJIS
	case "EUC":
		return japanese.EUCJP
	case "KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW", "KSCpc-EUC":
		return korean.EUCKR
	}
	if strings.HasPrefix(name, "Uni") && (strings.HasSuffix(name, "-UCS2") || strings.HasSuffix(name, "-UTF16")) {
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// decode gives the text of a string and how many characters had no mapping; those are left out.
func (f *font) decode(raw string) (string, int) {
	var text string
	if f.charset != nil {
		decoded, err := f.charset.NewDecoder().String(raw)
		if err != nil {
			return "", len(raw)
		}
		text = decoded
	} else {
		text = f.encoder.Decode(raw)
	}
	unmapped := strings.Count(text, string(utf8.RuneError))
	if !utf8.ValidString(text) {
		return strings.ToValidUTF8(strings.ReplaceAll(text, string(utf8.RuneError), ""), ""), max(unmapped, 1)
	}
	if unmapped > 0 {
		text = strings.ReplaceAll(text, string(utf8.RuneError), "")
	}
	return text, unmapped
}

// measure gives the width in thousandths, the number of glyphs, and of those that are single-byte
// spaces, which word spacing applies to.
func (f *font) measure(raw string) (width float64, glyphs, spaces int) {
	switch {
	case f.charset != nil && f.composite: // half an em a byte is right for nearly all of these
		return float64(len(raw)) * 500, (len(raw) + 1) / 2, 0
	case f.composite:
		for i := 0; i+1 < len(raw); i += 2 {
			width += f.width(int(raw[i])<<8 | int(raw[i+1]))
			glyphs++
		}
		return width, glyphs, 0
	}
	for i := range len(raw) {
		width += f.width(int(raw[i]))
	}
	return width, len(raw), strings.Count(raw, " ")
}

func (f *font) width(code int) float64 {
	if w, ok := f.widths[code]; ok {
		return w
	}
	return f.standard
}

const mostWidths = 1 << 16

func simpleWidths(v pdf.Value) map[int]float64 {
	out := map[int]float64{}
	array, first := v.Key("Widths"), int(v.Key("FirstChar").Int64())
	for i := range min(array.Len(), 256) {
		out[first+i] = array.Index(i).Float64()
	}
	return out
}

// compositeWidths reads the W array: "c [w1 w2 …]" and "first last w".
func compositeWidths(w pdf.Value) map[int]float64 {
	out := map[int]float64{}
	for i := 0; i+1 < w.Len() && len(out) < mostWidths; {
		first, next := int(w.Index(i).Int64()), w.Index(i+1)
		if next.Kind() == pdf.Array {
			for j := range min(next.Len(), mostWidths) {
				out[first+j] = next.Index(j).Float64()
			}
			i += 2
			continue
		}
		width := w.Index(i + 2).Float64()
		for code := first; code <= min(int(next.Int64()), first+mostWidths); code++ {
			out[code] = width
		}
		i += 3
	}
	return out
}

func floatOr(v pdf.Value, standard float64) float64 {
	if v.Kind() == pdf.Integer || v.Kind() == pdf.Real {
		return v.Float64()
	}
	return standard
}
