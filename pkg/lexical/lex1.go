package lexical

import "sync"

// The memos of lex1: 8,192 words and 8,192 compounds of some 100 bytes at the most.
const (
	lex1WordSlots  = 1 << 13
	lex1WholeSlots = 1 << 13
)

func newLex1() *Analyzer {
	hash := newTermHash()
	a := &Analyzer{
		id:         "lex1",
		stop:       loadStopWords(stopWordsEnglish),
		han:        newHanFolder(hanFoldPairs),
		words:      newWordCache(hash),
		otherWords: newTextMemo[analysedWord](lex1WordSlots),
		wholes:     newTextMemo[string](lex1WholeSlots),
		hash:       hash,
		short:      newShortcuts(),
	}
	a.scratches.New = func() any { return newScratch(a) }
	a.print = sync.OnceValue(func() string { return fingerprint(a) })
	return a
}
