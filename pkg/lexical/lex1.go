package lexical

import "sync"

// The memos of lex1: 65,536 short words of some 100 bytes, 8,192 long ones and 8,192 compounds at the most.
const (
	lex1WordSlots  = 1 << 16
	lex1LongSlots  = 1 << 13
	lex1WholeSlots = 1 << 13
)

func newLex1() *Analyzer {
	a := &Analyzer{
		id:        "lex1",
		stop:      loadStopWords(stopWordsEnglish),
		han:       newHanFolder(hanFoldPairs),
		words:     newMemo[keyedWord](lex1WordSlots),
		longWords: newTextMemo[analysedWord](lex1LongSlots),
		wholes:    newTextMemo[string](lex1WholeSlots),
		hash:      newTermHash(),
		short:     newShortcuts(),
	}
	a.scratches.New = func() any { return newScratch(a) }
	a.print = sync.OnceValue(func() string { return fingerprint(a) })
	return a
}
