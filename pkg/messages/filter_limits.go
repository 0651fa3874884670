package messages

import "fmt"

// FilterLimits bound a filter before anything of it is evaluated. In a knowledge base's configuration a
// field of 0, or a missing one, leaves the server's limit, and a larger one does not raise it.
type FilterLimits struct {
	Characters int `json:"expressionCharacters,omitempty"` // of an expression
	Depth      int `json:"depth,omitempty"`                // logical operators, parentheses and NOTs around a condition
	Conditions int `json:"conditions,omitempty"`           // conditions on a field in a filter, BETWEEN counting two
	Values     int `json:"values,omitempty"`               // values of one in or notIn
}

// DefaultFilterLimits returns the usual limits.
func DefaultFilterLimits() FilterLimits {
	return FilterLimits{Characters: 2048, Depth: 16, Conditions: 256, Values: 256}
}

// MaxFilterLimits returns what no setting goes beyond: filters are compiled to one statement.
func MaxFilterLimits() FilterLimits {
	return FilterLimits{Characters: 65_536, Depth: 64, Conditions: 4096, Values: 4096}
}

// named lists the fields by their keys.
func (l *FilterLimits) named() []struct {
	key   string
	value *int
} {
	return []struct {
		key   string
		value *int
	}{{"expressionCharacters", &l.Characters}, {"depth", &l.Depth}, {"conditions", &l.Conditions}, {"values", &l.Values}}
}

func (l *FilterLimits) validate() error {
	if l == nil {
		return nil
	}
	most := MaxFilterLimits()
	highest := most.named()
	for i, f := range l.named() {
		if *f.value < 0 || *f.value > *highest[i].value {
			return Invalid(configRoot+".filterLimits."+f.key, fmt.Sprintf("must be 1 to %d, or 0 for the server's", *highest[i].value))
		}
	}
	return nil
}

// tightened returns the server's limits, each lowered to that of a knowledge base; nil lowers none.
func (l *FilterLimits) tightened(server FilterLimits) FilterLimits {
	if l == nil {
		return server
	}
	own := *l
	limits := server.named()
	for i, f := range own.named() {
		if *f.value > 0 {
			*limits[i].value = min(*limits[i].value, *f.value)
		}
	}
	return server
}
