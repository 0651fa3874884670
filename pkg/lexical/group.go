package lexical

import "unicode"

// groupOf returns the group that r pairs up in. Ranges are spelled out for the scripts that matter for
// speed; r is in NFKC, so compatibility forms need no mention.
func groupOf(r rune) group {
	switch {
	case r < 0xE00:
		return spaced
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF:
		return cjk
	case r >= 0xAC00 && r <= 0xD7FF, r >= 0x1100 && r <= 0x11FF, r >= 0xA960 && r <= 0xA97F:
		return hangul
	case r >= 0x2E80 && r <= 0x31FF:
		return kanaGroup(r)
	case r >= 0x20000 && r <= 0x3FFFF, r >= 0xF900 && r <= 0xFAFF, r >= 0x1AFF0 && r <= 0x1B16F:
		return cjk
	}
	return southEastAsian(r)
}

// kanaGroup decides in the blocks that mix letters with punctuation.
func kanaGroup(r rune) group {
	switch {
	case r == 0x303B, r >= 0x3005 && r <= 0x3007, r >= 0x3021 && r <= 0x3029, r >= 0x3038 && r <= 0x303A:
		return cjk
	case r >= 0x3041 && r <= 0x30FF && r != 0x30A0 && r != 0x30FB && !(r >= 0x3099 && r <= 0x309C):
		return cjk
	case r >= 0x3105 && r <= 0x312F, r >= 0x31A0 && r <= 0x31BF, r >= 0x31F0:
		return cjk
	case r >= 0x3131 && r <= 0x318E:
		return hangul
	}
	return spaced
}

// southEastAsian decides for the scripts whose words are not told apart. Their digits and punctuation are
// left to the words.
func southEastAsian(r rune) group {
	g := spaced
	switch {
	case r < 0xE80:
		g = thai
	case r < 0xF00:
		g = lao
	case r >= 0x1000 && r <= 0x109F, r >= 0xA9E0 && r <= 0xA9FF, r >= 0xAA60 && r <= 0xAA7F:
		g = myanmar
	case r >= 0x1780 && r <= 0x17FF:
		g = khmer
	}
	if g != spaced && !unicode.In(r, unicode.L, unicode.M) {
		return spaced
	}
	return g
}
