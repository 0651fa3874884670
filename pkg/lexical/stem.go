package lexical

import (
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
)

// maxStemBytes is the longest word that is stemmed. No real word is longer, and a stemmer copies its word
// many times.
const maxStemBytes = 64

// script is a script that has a stemmer.
type script uint8

const (
	noScript script = iota
	latin
	cyrillic
	arabicScript
)

// wordScript returns the one script that all letters of word are of, noScript when there is none.
func wordScript(word string) script {
	found := noScript
	for _, r := range word {
		if unicode.Is(unicode.M, r) {
			continue
		}
		s := runeScript(r)
		if s == noScript || found != noScript && s != found {
			return noScript
		}
		found = s
	}
	return found
}

func runeScript(r rune) script {
	switch {
	case r >= 'a' && r <= 'z':
		return latin
	case r < 0xAA || !unicode.IsLetter(r):
		return noScript
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Arabic, r):
		return arabicScript
	}
	return noScript
}

// stem returns the stem of a word in lower case, by the language that its script stands for. Accents go
// before an English stem is taken: résumé and resume have to meet.
func stem(word string) string {
	sc := wordScript(word)
	if sc == noScript || len(word) > maxStemBytes {
		return foldAccents(word)
	}
	stemmer := english.Stem
	switch sc {
	case latin:
		word = foldAccents(word)
	case cyrillic:
		stemmer, word = russian.Stem, strings.ReplaceAll(word, "ё", "е")
	case arabicScript:
		stemmer = arabic.Stem
	}
	env := snowballstem.NewEnv(word)
	stemmer(env)
	if env.Current() == "" {
		return word
	}
	return env.Current()
}
