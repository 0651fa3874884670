package lexical

// MaxQueryTerms is how many distinct terms a query keeps, in each of its two lists.
const MaxQueryTerms = 128

// extraWeight is the weight of parts and compounds in a query. At full weight they cost up to 0.014 of
// nDCG@10 on prose; at 0.3 an exact identifier still wins.
const extraWeight = 0.3

// QueryTerm is one distinct term of a query.
type QueryTerm struct {
	Term   string
	Weight float32 // factor of the term's score; occurrences add up
	Kind   Kind    // of the heaviest occurrence
}

// Query is what to look for.
type Query struct {
	// Terms are the terms of the first pass, in the order of the text.
	Terms []QueryTerm
	// Second are more terms, the single characters of scripts without spaces, to be added to Terms in a
	// second pass when the first finds fewer documents than wanted.
	Second []QueryTerm
	// StopOnly says that the text holds nothing but stop words, which Terms then are.
	StopOnly bool
	// Truncated says that distinct terms beyond MaxQueryTerms were left out.
	Truncated bool
}

// Query analyses the text of a query. A text without any term gives the zero Query.
func (a *Analyzer) Query(text string) Query {
	s := a.scratch()
	defer a.release(s)
	s.begin()
	s.segment(a, s.normalize(text, a.han))
	stopOnly := !hasContent(s.tokens)
	first, second := newTermList(len(s.tokens)), termList{}
	terms := s.terms()
	for i := range s.tokens {
		t := &s.tokens[i]
		term := terms.next(&t.term)
		switch {
		case t.kind == Unigram && !t.lone:
			second.add(term, t.kind, 1)
		case t.kind == Part && t.stop, t.stop && !stopOnly:
		case t.kind == Part, t.kind == Whole:
			first.add(term, t.kind, extraWeight)
		default:
			first.add(term, t.kind, 1)
		}
	}
	return Query{
		Terms:     first.terms,
		Second:    second.terms,
		StopOnly:  stopOnly && len(first.terms) > 0,
		Truncated: first.cut || second.cut,
	}
}

// hasContent says whether a primary token is left when stop words are dropped.
func hasContent(tokens []token) bool {
	for _, t := range tokens {
		if t.kind == Unigram || t.kind == Word && !t.stop {
			return true
		}
	}
	return false
}

// termList gathers distinct terms in order of their first occurrence.
type termList struct {
	terms []QueryTerm
	index map[string]int // nil while the terms are few
	best  []float32      // weight of the heaviest occurrence
	cut   bool
}

// fewTerms is how many terms are quicker looked through than hashed.
const fewTerms = 12

// newTermList returns a list with room for the terms of an ordinary query of so many tokens.
func newTermList(tokens int) termList {
	if tokens == 0 {
		return termList{}
	}
	n := min(tokens, fewTerms)
	return termList{terms: make([]QueryTerm, 0, n), best: make([]float32, 0, n)}
}

func (l *termList) add(term string, kind Kind, weight float32) {
	i := l.find(term)
	if i < 0 {
		if len(l.terms) == MaxQueryTerms {
			l.cut = true
			return
		}
		l.note(term)
		l.terms = append(l.terms, QueryTerm{Term: term, Weight: weight, Kind: kind})
		l.best = append(l.best, weight)
		return
	}
	l.terms[i].Weight += weight
	if weight > l.best[i] {
		l.best[i], l.terms[i].Kind = weight, kind
	}
}

// find returns the place of term in the list, -1 when it is not there.
func (l *termList) find(term string) int {
	if l.index != nil {
		if i, ok := l.index[term]; ok {
			return i
		}
		return -1
	}
	for i := range l.terms {
		if l.terms[i].Term == term {
			return i
		}
	}
	return -1
}

// note readies the index for a term that is about to be added.
func (l *termList) note(term string) {
	if l.index == nil && len(l.terms) == fewTerms {
		l.index = make(map[string]int, MaxQueryTerms)
		for i := range l.terms {
			l.index[l.terms[i].Term] = i
		}
	}
	if l.index != nil {
		l.index[term] = len(l.terms)
	}
}
