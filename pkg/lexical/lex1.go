package lexical

import "sync"

// The memos of lex1: 65,536 words of some 80 bytes and 8,192 compounds at the most.
const (
	lex1WordSlots  = 1 << 16
	lex1WholeSlots = 1 << 13
)

func newLex1() *Analyzer {
	a := &Analyzer{
		id:     "lex1",
		stop:   loadStopWords(stopWordsEnglish),
		han:    newHanFolder(hanFoldPairs),
		words:  newMemo[analysedWord](lex1WordSlots),
		wholes: newMemo[string](lex1WholeSlots),
	}
	a.scratches.New = func() any { return newScratch() }
	a.print = sync.OnceValue(func() string { return fingerprint(a) })
	return a
}
