package filter

import (
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Expression writes a filter as an expression that ParseExpression reads to the same conditions. A filter with
// an operator that expressions do not have (startsWith, stringContains, listContains) is NOT_SUPPORTED, an
// empty one a VALIDATION_ERROR.
func Expression(f Filter) (string, error) {
	if err := (Limits{Depth: maxDepth}).WithDefaults().check("filter", f); err != nil {
		return "", err
	}
	var w strings.Builder
	if err := writeNode(&w, f); err != nil {
		return "", err
	}
	return w.String(), nil
}

func writeNode(w *strings.Builder, f Filter) error {
	if l, ok := leafOf(f); ok {
		return writeLeaf(w, l)
	}
	g, ok := groupOf(f)
	if !ok || len(g.of) == 0 {
		return messages.Invalid("filter", "holds an empty filter")
	}
	between := " AND "
	if g.how != andAll {
		between = " OR "
	}
	if g.how == notAll {
		w.WriteString("NOT ")
	}
	if len(g.of) == 1 {
		return writeNode(w, g.of[0])
	}
	w.WriteByte('(')
	for i, of := range g.of {
		if i > 0 {
			w.WriteString(between)
		}
		if err := writeNode(w, of); err != nil {
			return err
		}
	}
	w.WriteByte(')')
	return nil
}

func writeLeaf(w *strings.Builder, l leaf) error {
	if len(l.op.spellings) == 0 {
		return &messages.Error{
			Code: messages.CodeNotSupported, Field: l.at.path, Message: "expressions have no operator " + l.op.name,
		}
	}
	writeName(w, l.key)
	w.WriteByte(' ')
	w.WriteString(l.op.spellings[0])
	values := make([]string, len(l.values))
	for i, v := range l.values {
		values[i] = v.written()
	}
	switch l.op.takes {
	case takesOne:
		w.WriteString(" " + values[0])
	case takesSet:
		w.WriteString(" (" + strings.Join(values, ", ") + ")")
	}
	return nil
}

// writeName quotes what is no plain name, and what would lose its beginning.
func writeName(w *strings.Builder, key string) {
	name := &lexer{text: []rune(key)}
	if startsName(name.at(0)) && name.name().kind == fieldToken && name.pos == len(name.text) && !slices.Contains(name.text, '.') {
		w.WriteString(key)
		return
	}
	w.WriteString("`" + strings.ReplaceAll(key, "`", "``") + "`")
}

// written is the value as it stands in an expression. A number is never beyond what expressions take, but as
// an integer of more than 64 bits it needs an exponent.
func (l Literal) written() string {
	switch {
	case l.kind == stringKind:
		return "'" + strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(l.text) + "'"
	case l.kind == numberKind && len(strings.TrimLeft(l.text, "-")) > 18 && !strings.ContainsAny(l.text, ".eE"):
		return l.text + "e0"
	}
	return l.text
}
