package parse

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// numberFormat is a number format code of a spreadsheet, read once and used for many cells.
type numberFormat struct {
	sections []formatSection
	epoch    bool // the workbook counts days from 1904
}

type formatSection struct {
	tokens    []formatToken
	condition string // such as ">=100"; empty: by sign
	date      bool
	text      bool // holds @
	general   bool
}

type formatToken struct {
	kind  tokenKind
	value string
}

type tokenKind byte

const (
	tokenLiteral  = tokenKind('"')
	tokenDigit    = tokenKind('0') // 0 # ?
	tokenPoint    = tokenKind('.')
	tokenComma    = tokenKind(',')
	tokenPercent  = tokenKind('%')
	tokenExponent = tokenKind('E')
	tokenSlash    = tokenKind('/') // of a fraction
	tokenDate     = tokenKind('d') // a run of y, m, d, h or s, AM/PM, or .0 behind seconds
	tokenElapsed  = tokenKind('[') // [h], [m], [s]
	tokenText     = tokenKind('@')
)

// builtinFormats are the codes behind the ids that files do not spell out. Dates that follow the reader's
// locale are written as ISO 8601.
func builtinFormat(id int) string {
	codes := map[int]string{
		0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0",
		7: "$#,##0.00;-$#,##0.00", 8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
		14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
		21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)",
		40: "#,##0.00;(#,##0.00)", 41: "#,##0;-#,##0;-", 42: "$#,##0;-$#,##0;-", 43: "#,##0.00;-#,##0.00;-", 44: "$#,##0.00;-$#,##0.00;-",
		45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
	}
	switch code, ok := codes[id]; {
	case ok:
		return code
	case id >= 27 && id <= 36 || id >= 50 && id <= 58: // East Asian dates
		return "yyyy-mm-dd"
	}
	return "General"
}

const maxFormatCode = 1000 // bytes; the longest that programs write is 255 characters

func newNumberFormat(code string, epoch bool) *numberFormat {
	if len(code) > maxFormatCode {
		code = "General"
	}
	f := &numberFormat{epoch: epoch}
	for _, s := range splitSections(code) {
		f.sections = append(f.sections, readSection(s))
	}
	return f
}

// splitSections cuts at semicolons outside quotes and brackets.
func splitSections(code string) []string {
	var out []string
	from, quoted := 0, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && !quoted:
			i++
		case c == ';' && !quoted:
			out = append(out, code[from:i])
			from = i + 1
		}
	}
	return append(out, code[from:])
}

// format gives what a spreadsheet shows for a number.
func (f *numberFormat) format(v float64) string {
	s, value := f.section(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return ""
	case s.general && len(s.tokens) == 0:
		return general(v)
	case s.date:
		if out, ok := s.formatDate(v, f.epoch); ok {
			return strings.TrimSpace(out)
		}
		return general(v)
	}
	return strings.TrimSpace(s.formatNumber(value))
}

// section chooses by condition, else by sign. The value comes back without its sign where the section
// says how to show that.
func (f *numberFormat) section(v float64) (formatSection, float64) {
	all := f.sections
	for i, s := range all {
		if s.condition != "" && holds(s.condition, v) {
			if i > 0 {
				v = math.Abs(v)
			}
			return s, v
		}
	}
	var plain []formatSection
	for _, s := range all {
		if s.condition == "" {
			plain = append(plain, s)
		}
	}
	switch n := len(plain); {
	case n == 0:
		return formatSection{general: true}, v
	case len(plain) < len(all):
		return plain[0], v
	case v < 0 && n > 1 && !plain[1].text:
		return plain[1], -v
	case v == 0 && n > 2 && !plain[2].text:
		return plain[2], v
	}
	return plain[0], v
}

func holds(condition string, v float64) bool {
	op := strings.TrimRight(condition, "0123456789.-+eE")
	limit, err := strconv.ParseFloat(condition[len(op):], 64)
	if err != nil {
		return false
	}
	switch op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "=":
		return v == limit
	case "<>":
		return v != limit
	}
	return false
}

// general shows a number without trailing zeros, as precise as spreadsheets are.
func general(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if a := math.Abs(v); a >= 1e-5 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'E', -1, 64)
}

// formatNumber fills the placeholders of the section.
func (s formatSection) formatNumber(v float64) string {
	tokens, scaled := s.tokens, v
	for _, t := range tokens {
		if t.kind == tokenPercent {
			scaled *= 100
		}
	}
	if at := slices.IndexFunc(tokens, func(t formatToken) bool { return t.kind == tokenSlash }); at >= 0 {
		return fraction(tokens, at, scaled)
	}
	if s.general {
		return literals(tokens, general(scaled))
	}
	first := slices.IndexFunc(tokens, func(t formatToken) bool { return t.kind == tokenDigit })
	switch {
	case s.text:
		return literals(tokens, general(scaled))
	case first < 0:
		return literals(tokens, "")
	}
	if at := slices.IndexFunc(tokens, func(t formatToken) bool { return t.kind == tokenExponent }); at >= 0 {
		decimals := countDigits(tokens[:at]) - countDigits(beforePoint(tokens[:at]))
		return literals(tokens[:first], "") + strconv.FormatFloat(scaled, 'E', decimals, 64)
	}
	whole := beforePoint(tokens)
	for range trailingCommas(whole) + trailingCommas(tokens[len(whole):]) {
		scaled /= 1000
	}
	return fill(tokens, whole, scaled)
}
