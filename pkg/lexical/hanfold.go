package lexical

// The traditional characters of the table lie in this range.
const (
	hanFoldFirst = 0x3400
	hanFoldLast  = 0x9FFF
)

// hanFolder maps traditional Chinese characters to simplified ones.
type hanFolder struct {
	index [hanFoldLast - hanFoldFirst + 1]uint16 // place in to, from 1; 0 for none
	to    []rune
}

// newHanFolder reads pairs of a traditional character and its simplified form.
func newHanFolder(pairs string) *hanFolder {
	f := &hanFolder{}
	var from rune
	for _, r := range pairs {
		if from == 0 {
			from = r
			continue
		}
		f.to = append(f.to, r)
		f.index[from-hanFoldFirst] = uint16(len(f.to))
		from = 0
	}
	return f
}

// fold returns the simplified form of r, or r itself.
func (f *hanFolder) fold(r rune) rune {
	if r < hanFoldFirst || r > hanFoldLast {
		return r
	}
	if i := f.index[r-hanFoldFirst]; i > 0 {
		return f.to[i-1]
	}
	return r
}
