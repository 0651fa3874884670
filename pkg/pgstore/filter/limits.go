package filter

import (
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// Limits bound a filter before anything is evaluated. A zero field means its default.
type Limits struct {
	Characters int // of an expression; default 2,048
	Bytes      int // of a filter in JSON; default 1 MiB
	Depth      int // logical operators, parentheses and NOTs around a condition; default 16, at most 64
	Predicates int // conditions on a field in a filter, BETWEEN counting two; default 256
	Values     int // values of one in or notIn; default 256
}

// LimitsOf returns the limits of a server or of a knowledge base.
func LimitsOf(l messages.FilterLimits) Limits {
	return Limits{Characters: l.Characters, Depth: l.Depth, Predicates: l.Conditions, Values: l.Values}
}

// maxDepth is the most that may be configured: trees are walked recursively.
const maxDepth = 64

// WithDefaults returns l with nothing left open.
func (l Limits) WithDefaults() Limits {
	orDefault := func(v *int, value int) {
		if *v <= 0 {
			*v = value
		}
	}
	usual := messages.DefaultFilterLimits()
	orDefault(&l.Characters, usual.Characters)
	orDefault(&l.Bytes, 1<<20)
	orDefault(&l.Depth, usual.Depth)
	orDefault(&l.Predicates, usual.Conditions)
	orDefault(&l.Values, usual.Values)
	l.Depth = min(l.Depth, maxDepth)
	return l
}

func (l Limits) tooDeep() string {
	return fmt.Sprintf("is nested deeper than %d levels", l.Depth)
}

func (l Limits) tooMany() string {
	return fmt.Sprintf("has more than %d conditions", l.Predicates)
}

func (l Limits) tooManyValues() string {
	return fmt.Sprintf("has more than %d values", l.Values)
}

// check looks at a whole tree without walking it.
func (l Limits) check(path string, f Filter) error {
	if f == nil {
		return messages.Invalid(path, "is no filter")
	}
	switch s := f.shape(); {
	case s.depth > l.Depth:
		return messages.Invalid(path, l.tooDeep())
	case s.leaves > l.Predicates:
		return messages.Invalid(path, l.tooMany())
	}
	return nil
}
