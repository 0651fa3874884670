package filter

import (
	"strconv"
	"strings"
)

// Bounds of canonical notation: exponents beyond are left as they are, and more places than this are
// written with an exponent.
const (
	maxExponent = 1 << 20
	maxPlaces   = 21
)

// canonicalNumber gives every notation of a number the same text, exactly: 60, 60.0, +6e1 and 060 are
// 60. s is a decimal number with optional sign, point and exponent. Its time is linear in s, whatever the
// exponent.
func canonicalNumber(s string) string {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(s, "+")), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	sign := ""
	if negative {
		sign = "-"
	}
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return sign + plain(whole, fraction) + "e" + power
		}
	}
	return sign + decimal(significant, exponent-len(fraction)+len(digits)-len(significant))
}

// plain writes a mantissa as it was given, without leading zeros.
func plain(whole, fraction string) string {
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// decimal writes digits · 10^exponent.
func decimal(digits string, exponent int) string {
	switch point := len(digits) + exponent; {
	case exponent >= 0 && point <= maxPlaces:
		return digits + strings.Repeat("0", exponent)
	case exponent < 0 && point > 0:
		return digits[:point] + "." + digits[point:]
	case exponent < 0 && -point <= maxPlaces:
		return "0." + strings.Repeat("0", -point) + digits
	case len(digits) == 1:
		return digits + "e" + strconv.Itoa(exponent)
	default:
		return digits[:1] + "." + digits[1:] + "e" + strconv.Itoa(exponent+len(digits)-1)
	}
}
