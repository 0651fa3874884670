// Package lexical turns text into the terms of the BM25 leg, for documents and for queries alike.
//
// An [Analyzer] is looked up by its id ([Lookup]). The id is part of a generation's configuration: terms
// of two ids must never meet in one ranking, so a change of output is a new id, and a test compares
// [Analyzer.Fingerprint] with the value recorded for each id.
//
// Analyzer lex1 works in these steps:
//
//  1. invalid UTF-8, NUL and invisible characters go; curly apostrophes and hyphens become ASCII;
//  2. NFKC, then traditional Chinese characters become simplified ones, one by one;
//  3. runs of Han, kana, Hangul, Thai, Lao, Khmer and Myanmar give one unigram a character and one bigram a
//     pair of neighbours; everything else is cut into words (UAX #29);
//  4. words are lower-cased, lose a possessive 's and Latin accents, and are stemmed by script (Latin as
//     English, Cyrillic as Russian, Arabic as Arabic) if they are all letters;
//  5. parts of identifiers (foo_bar.baz, camelCase) and whole compounds (e-mail, c++, 2025-01-02) are added
//     beside the words.
//
// Stop words are indexed like other words and dropped on the query side only, so that a query of nothing
// but stop words still has an answer.
//
// Tables of shortcuts, made by asking the general code, and memos of analysed words make it fast. They change
// no output; a test compares with an analyzer that has none. Inside, terms are numbers wherever they can be.
//
// The package does no I/O, reads no locale and keeps no state but bounded memos: some ten megabytes of analysed
// words at the most. Everything in it is safe for concurrent use.
package lexical
