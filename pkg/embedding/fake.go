package embedding

import (
	"unicode"
	"unicode/utf8"
)

// Fake computes vectors without a model: the same text always has the same unit vector, on every
// machine; texts that share words are similar. The zero value has 384 dimensions. Safe for
// concurrent use.
type Fake struct {
	Dims int // default 384
}

const (
	fakeDims     = 384
	featuresWord = 4   // dimensions a word touches
	textWeight   = 0.5 // of the whole text's own direction, against 1 for a word
)

// Vector returns the text's vector. Words are runs of letters and digits without regard to case, and
// single characters in scripts without spaces.
func (f Fake) Vector(text string) []float32 {
	dims := f.Dims
	if dims <= 0 {
		dims = fakeDims
	}
	v := make([]float32, dims)
	eachWord(text, func(word uint64) {
		for range featuresWord {
			word = mix(word)
			add(v, word, 1)
		}
	})
	h := hashText(text)
	for range 4 * featuresWord {
		h = mix(h)
		add(v, h, textWeight)
	}
	if norm(v) == 0 {
		v[h%uint64(dims)] = 1
	}
	normalize(v)
	return v
}

// add puts a signed weight at the dimension the hash names.
func add(v []float32, h uint64, weight float32) {
	if h>>63 == 1 {
		weight = -weight
	}
	v[h%uint64(len(v))] += weight
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// eachWord calls fn with the hash of every word.
func eachWord(text string, fn func(uint64)) {
	h, open := uint64(fnvOffset), false
	end := func() {
		if open {
			fn(h)
		}
		h, open = fnvOffset, false
	}
	for _, r := range text {
		switch {
		case r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			fn((fnvOffset ^ uint64(r)) * fnvPrime)
		case wordRune(r):
			h, open = (h^uint64(lower(r)))*fnvPrime, true
		default:
			end()
		}
	}
	end()
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func lower(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}

func hashText(text string) uint64 {
	h := uint64(fnvOffset)
	for i := 0; i < len(text); i++ {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// mix is the output step of the splitmix64 generator.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
