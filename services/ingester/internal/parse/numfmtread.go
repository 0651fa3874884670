package parse

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// readSection splits one section of a format code into tokens.
func readSection(code string) formatSection {
	var s formatSection
	if strings.EqualFold(strings.TrimSpace(code), "general") {
		return formatSection{general: true}
	}
	for code != "" {
		code = s.next(code)
	}
	s.settleDates()
	return s
}

// next reads one token and returns what follows it.
func (s *formatSection) next(code string) string {
	c, size := utf8.DecodeRuneInString(code)
	rest := code[size:]
	lower := strings.ToLower(code)
	switch {
	case c == '"':
		text, after, _ := strings.Cut(rest, `"`)
		s.add(tokenLiteral, text)
		return after
	case c == '\\' || c == '_' || c == '*':
		next, width := utf8.DecodeRuneInString(rest)
		if c == '\\' && width > 0 {
			s.add(tokenLiteral, string(next))
		}
		return rest[width:]
	case c == '[':
		return s.bracket(rest)
	case strings.HasPrefix(lower, "general"):
		s.general = true
		s.add(tokenDigit, "0")
		return code[len("general"):]
	case strings.HasPrefix(lower, "am/pm"):
		s.add(tokenDate, "am/pm")
		return code[len("am/pm"):]
	case strings.HasPrefix(lower, "a/p"):
		s.add(tokenDate, "am/pm")
		return code[len("a/p"):]
	case strings.ContainsRune("ymdhs", c|0x20) && c < utf8.RuneSelf:
		run := len(lower) - len(strings.TrimLeft(lower, string(c|0x20)))
		s.add(tokenDate, lower[:run])
		return code[run:]
	case strings.ContainsRune("0#?", c):
		s.add(tokenDigit, string(c))
	case (c == 'E' || c == 'e') && len(rest) > 0 && (rest[0] == '+' || rest[0] == '-'):
		s.add(tokenExponent, "E")
		return rest[1:]
	default:
		s.symbol(c)
	}
	return rest
}

func (s *formatSection) symbol(c rune) {
	switch c {
	case '.', ',', '%', '/', '@':
		s.text = s.text || c == '@'
		s.add(tokenKind(c), string(c))
	default:
		s.add(tokenLiteral, string(c))
	}
}

// bracket reads [h], a condition, a currency or locale, or a colour.
func (s *formatSection) bracket(code string) string {
	inside, after, _ := strings.Cut(code, "]")
	lower := strings.ToLower(inside)
	switch {
	case inside == "":
	case strings.Trim(lower, "h") == "" || strings.Trim(lower, "m") == "" || strings.Trim(lower, "s") == "":
		s.add(tokenElapsed, lower)
	case strings.ContainsRune("<>=", rune(inside[0])):
		s.condition = inside
	case inside[0] == '$':
		symbol, _, _ := strings.Cut(inside[1:], "-")
		s.add(tokenLiteral, symbol)
	}
	return after
}

func (s *formatSection) add(kind tokenKind, value string) {
	s.date = s.date || kind == tokenDate || kind == tokenElapsed
	s.tokens = append(s.tokens, formatToken{kind, value})
}

// settleDates tells minutes from months, and makes the symbols of a date plain text.
func (s *formatSection) settleDates() {
	if !s.date {
		return
	}
	clock := false // the last part was hours
	for i := range s.tokens {
		t := &s.tokens[i]
		switch {
		case t.kind == tokenElapsed:
			clock = t.value[0] == 'h'
		case t.kind == tokenDate && t.value[0] == 'm' && len(t.value) < 3 && (clock || s.secondsFollow(i)):
			t.value = strings.ReplaceAll(t.value, "m", "n")
			clock = false
		case t.kind == tokenDate && t.value != "am/pm":
			clock = t.value[0] == 'h'
		case t.kind == tokenPoint && i > 0 && s.tokens[i-1].kind == tokenDate && s.tokens[i-1].value[0] == 's':
			t.kind, t.value = tokenDate, "."
		case t.kind == tokenDigit && i > 0 && strings.HasPrefix(s.tokens[i-1].value, ".") && s.tokens[i-1].kind == tokenDate:
			t.kind, t.value = tokenDate, s.tokens[i-1].value+"0"
			s.tokens[i-1].value = "\x00" // shown by the longer one
		case t.kind != tokenDate && t.kind != tokenLiteral:
			t.kind = tokenLiteral
		}
	}
}

func (s *formatSection) secondsFollow(i int) bool {
	for _, t := range s.tokens[i+1:] {
		if t.kind == tokenDate || t.kind == tokenElapsed {
			return t.value[0] == 's'
		}
	}
	return false
}

// formatDate shows a serial number as a date; false when it is none.
func (s formatSection) formatDate(serial float64, epoch1904 bool) (string, bool) {
	const most = 2_958_466 // the last day of the year 9999
	if serial < 0 || serial >= most {
		return "", false
	}
	fine := false
	for _, t := range s.tokens {
		fine = fine || t.kind == tokenDate && strings.HasPrefix(t.value, ".0")
	}
	at := serialTime(serial, epoch1904, fine)
	half := false
	for _, t := range s.tokens {
		half = half || t.value == "am/pm" && t.kind == tokenDate
	}
	var out strings.Builder
	for _, t := range s.tokens {
		switch t.kind {
		case tokenDate:
			out.WriteString(datePart(t.value, at, half))
		case tokenElapsed:
			out.WriteString(elapsed(t.value, serial))
		default:
			out.WriteString(t.value)
		}
	}
	return out.String(), true
}

// serialTime turns days since the epoch into a time, to the second unless fine.
func serialTime(serial float64, epoch1904, fine bool) time.Time {
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case epoch1904:
		start = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case serial < 60: // spreadsheets count a 29 February 1900
		start = start.AddDate(0, 0, 1)
	}
	days, part := math.Modf(serial)
	step := time.Second
	if fine {
		step = time.Millisecond
	}
	clock := time.Duration(math.Round(part*float64(24*time.Hour/step))) * step
	return start.AddDate(0, 0, int(days)).Add(clock)
}

func datePart(code string, at time.Time, half bool) string {
	hour := at.Hour()
	if half {
		hour = (hour+11)%12 + 1
	}
	pad := func(v int) string {
		if len(code) > 1 {
			return fmt.Sprintf("%02d", v)
		}
		return fmt.Sprint(v)
	}
	switch code[0] {
	case 'y':
		if len(code) > 2 {
			return fmt.Sprintf("%04d", at.Year())
		}
		return fmt.Sprintf("%02d", at.Year()%100)
	case 'm':
		return monthPart(code, at)
	case 'd':
		switch {
		case len(code) > 3:
			return at.Weekday().String()
		case len(code) == 3:
			return at.Weekday().String()[:3]
		}
		return pad(at.Day())
	case 'h':
		return pad(hour)
	case 'n':
		return pad(at.Minute())
	case 's':
		return pad(at.Second())
	case 'a':
		return at.Format("PM")
	case '.':
		digits := fmt.Sprintf("%03d", at.Nanosecond()/int(time.Millisecond))
		return "." + digits[:min(len(code)-1, len(digits))]
	}
	return ""
}

func monthPart(code string, at time.Time) string {
	name := at.Month().String()
	switch len(code) {
	case 1:
		return fmt.Sprint(int(at.Month()))
	case 2:
		return fmt.Sprintf("%02d", at.Month())
	case 3:
		return name[:3]
	case 5:
		return name[:1]
	}
	return name
}

func elapsed(unit string, serial float64) string {
	per := map[byte]float64{'h': 24, 'm': 24 * 60, 's': 24 * 60 * 60}[unit[0]]
	return fmt.Sprintf("%0*d", len(unit), int64(math.Floor(serial*per+1e-6)))
}
