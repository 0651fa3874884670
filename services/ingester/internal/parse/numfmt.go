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

// trailingCommas counts the commas behind the last digit: each divides by a thousand.
func trailingCommas(tokens []formatToken) int {
	n := 0
	for i := len(tokens) - 1; i >= 0 && tokens[i].kind != tokenDigit; i-- {
		if tokens[i].kind == tokenComma {
			n++
		}
	}
	return n
}

func fill(tokens, whole []formatToken, v float64) string {
	decimals := min(countDigits(tokens)-countDigits(whole), 30)
	digits := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	integer, fractional, _ := strings.Cut(digits, ".")
	if integer == "0" {
		integer = ""
	}
	out := fillWhole(whole, integer)
	if v < 0 && strings.Trim(digits, "0.") != "" {
		out = "-" + out
	}
	return out + fillFraction(tokens[len(whole):], fractional)
}

// fillWhole fills the integer placeholders from the right; the leftmost takes all digits that are left.
func fillWhole(tokens []formatToken, digits string) string {
	group := false
	last := -1
	for i, t := range tokens {
		if t.kind == tokenDigit {
			group = group || last >= 0 && tokens[i-1].kind == tokenComma
			last = i
		}
	}
	first := slices.IndexFunc(tokens, func(t formatToken) bool { return t.kind == tokenDigit })
	var out []string
	placed := 0
	put := func(digit string) {
		if group && placed > 0 && placed%3 == 0 {
			out = append(out, ",")
		}
		placed++
		out = append(out, digit)
	}
	for i := len(tokens) - 1; i >= 0; i-- {
		t := tokens[i]
		switch {
		case t.kind == tokenComma:
		case t.kind != tokenDigit:
			out = append(out, t.value)
		default:
			if n := len(digits); n > 0 {
				put(digits[n-1:])
				digits = digits[:n-1]
			} else if t.value == "0" {
				put("0")
			}
			for ; i == first && digits != ""; digits = digits[:len(digits)-1] {
				put(digits[len(digits)-1:])
			}
		}
	}
	slices.Reverse(out)
	return strings.Join(out, "")
}

// fillFraction fills what stands behind the point; optional zeros at the end are left out.
func fillFraction(tokens []formatToken, digits string) string {
	keep := strings.TrimRight(digits, "0")
	var out, literal strings.Builder
	at, shown := 0, 0
	for _, t := range tokens {
		switch t.kind {
		case tokenPoint, tokenComma:
		case tokenDigit:
			if at < len(digits) && (t.value == "0" || at < len(keep)) {
				if shown == 0 {
					out.WriteByte('.')
				}
				shown++
				out.WriteByte(digits[at])
			}
			at++
		default:
			if at == 0 || at >= len(digits) {
				literal.WriteString(t.value)
			}
		}
	}
	return out.String() + literal.String()
}

func beforePoint(tokens []formatToken) []formatToken {
	if at := slices.IndexFunc(tokens, func(t formatToken) bool { return t.kind == tokenPoint }); at >= 0 {
		return tokens[:at]
	}
	last := 0 // behind the last digit; what follows is a suffix, but commas there still divide
	for i, t := range tokens {
		if t.kind == tokenDigit || t.kind == tokenComma {
			last = i + 1
		}
	}
	return tokens[:last]
}

func countDigits(tokens []formatToken) int {
	n := 0
	for _, t := range tokens {
		if t.kind == tokenDigit {
			n++
		}
	}
	return n
}

// literals joins the fixed text of tokens; value goes where the first of them is not fixed.
func literals(tokens []formatToken, value string) string {
	var out strings.Builder
	placed := false
	for _, t := range tokens {
		switch t.kind {
		case tokenLiteral, tokenPercent:
			out.WriteString(t.value)
		case tokenText, tokenDigit:
			if !placed {
				out.WriteString(value)
				placed = true
			}
		}
	}
	if !placed {
		return out.String() + value
	}
	return out.String()
}

// fraction shows a number as a mixed fraction; at is the slash.
func fraction(tokens []formatToken, at int, v float64) string {
	denominators := 0
	fixed := ""
	for _, t := range tokens[at+1:] {
		if t.kind == tokenDigit {
			denominators++
		}
		if t.kind == tokenLiteral {
			fixed += t.value
		}
	}
	most := int(math.Pow10(min(max(denominators, 1), 4))) - 1
	whole, part := math.Modf(math.Abs(v))
	numerator, denominator := 0, 1
	if n, err := strconv.Atoi(strings.TrimSpace(fixed)); err == nil && n > 0 && n < 10_000 {
		numerator, denominator = int(math.Round(part*float64(n))), n
	} else {
		best := math.Inf(1)
		for d := 1; d <= most; d++ {
			n := math.Round(part * float64(d))
			if miss := math.Abs(part - n/float64(d)); miss < best-1e-12 {
				best, numerator, denominator = miss, int(n), d
			}
		}
	}
	if numerator == denominator {
		whole, numerator = whole+1, 0
	}
	out := ""
	if v < 0 {
		out = "-"
	}
	if whole != 0 || numerator == 0 {
		out += strconv.FormatFloat(whole, 'f', 0, 64)
	}
	if numerator != 0 {
		if whole != 0 {
			out += " "
		}
		out += strconv.Itoa(numerator) + "/" + strconv.Itoa(denominator)
	}
	return out
}
