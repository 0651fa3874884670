package parse

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// rounded15 rounds as spreadsheets do: half up, on the first fifteen digits of the number.
func rounded15(v float64, decimals int) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if err != nil {
		short = v
	}
	digits := strconv.FormatFloat(short, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(fraction) <= decimals {
		return strconv.FormatFloat(short, 'f', decimals, 64)
	}
	up := fraction[decimals] >= '5'
	kept := []byte(whole + fraction[:decimals])
	for i := len(kept) - 1; up && i >= 0; i-- {
		if kept[i]++; kept[i] <= '9' {
			up = false
		} else {
			kept[i] = '0'
		}
	}
	out := string(kept)
	if up {
		out = "1" + out
	}
	if decimals == 0 {
		return out
	}
	return out[:len(out)-decimals] + "." + out[len(out)-decimals:]
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
	digits := rounded15(math.Abs(v), decimals)
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
