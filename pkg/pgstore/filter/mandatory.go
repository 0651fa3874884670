package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// MandatoryFilter is a condition that an administrator sets on a knowledge base and no request sees or
// takes away. It may name internal fields, and values of the form $name stand for facts about the caller
// ($tenant); a text that begins with a dollar sign and a name is written with two of them.
type MandatoryFilter struct {
	filter Filter
	binder SchemaBinder
}

// tenantFact is the fact that the server knows about every caller.
const tenantFact = "tenant"

// CheckMandatory checks the mandatory filter of a knowledge base as it is set, under the default limits.
// Nothing, or null, is fine: there is none. Errors are VALIDATION_ERROR with the path, or in an expression
// the position, of the fault.
func CheckMandatory(raw json.RawMessage, schema messages.MetadataSchema) error {
	if absent(raw) {
		return nil
	}
	_, err := ParseMandatory("mandatoryFilter", raw, schema, Limits{}, tenantFact)
	return err
}

// OfKnowledgeBase reads the mandatory filter of a knowledge base for its tenant. given is false, and nothing
// restricted, where there is none. A stored filter that cannot be applied is an error that is nobody's
// VALIDATION_ERROR: it is never left out, and no caller's fault.
func OfKnowledgeBase(raw json.RawMessage, schema messages.MetadataSchema, tenant string) (b Bound, given bool, err error) {
	if absent(raw) {
		return Bound{}, false, nil
	}
	m, err := ParseMandatory("mandatoryFilter", raw, schema, Limits{}, tenantFact)
	if err == nil {
		b, err = m.Bind(map[string]string{tenantFact: tenant})
	}
	if err != nil {
		return Bound{}, false, fmt.Errorf("read the mandatory filter: %v", err) //nolint:errorlint // see above
	}
	return b, true, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// ParseMandatory reads a mandatory filter, JSON or an expression in a JSON string, and checks it whole; facts
// are the names that may stand in it, "tenant" being the one of the server. at names the filter in errors,
// which are VALIDATION_ERROR.
func ParseMandatory(at string, raw json.RawMessage, schema messages.MetadataSchema, limits Limits, facts ...string) (MandatoryFilter, error) {
	f, err := parseEither(at, raw, limits)
	if err != nil {
		return MandatoryFilter{}, err
	}
	m := MandatoryFilter{filter: f, binder: SchemaBinder{Schema: schema, Limits: limits, Internal: true}}
	example := map[string]string{}
	for _, name := range facts {
		example[name] = "x"
	}
	if _, err := m.Bind(example); err != nil {
		return MandatoryFilter{}, err
	}
	return m, nil
}

func parseEither(at string, raw json.RawMessage, limits Limits) (Filter, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || text[0] != '"' {
		return ParseJSON(at, raw, limits)
	}
	var expression string
	if err := messages.DecodeStrict(raw, &expression); err != nil {
		return nil, messages.Invalid(at, reasonOf(err))
	}
	return ParseExpression(at, expression, limits)
}

// Bind puts the facts about a caller in. A fact that is missing is an error, never a wider filter.
func (m MandatoryFilter) Bind(facts map[string]string) (Bound, error) {
	f, err := Substitute(m.filter, facts)
	if err != nil {
		return Bound{}, err
	}
	return m.binder.Bind(f)
}

var placeholder = regexp.MustCompile(`^\$\$?[A-Za-z_][A-Za-z0-9_]*$`)

// Substitute returns a filter with every text value of the form $name replaced by the fact of that name,
// and $$name by $name. A name without a fact is a VALIDATION_ERROR. The given filter stays as it is.
func Substitute(f Filter, facts map[string]string) (Filter, error) {
	if err := (Limits{Depth: maxDepth}).WithDefaults().check("filter", f); err != nil {
		return nil, err
	}
	return substitute(f, facts)
}

func substitute(f Filter, facts map[string]string) (Filter, error) {
	if l, ok := leafOf(f); ok {
		return substituteLeaf(l, facts)
	}
	g, ok := groupOf(f)
	if !ok {
		return nil, messages.Invalid("filter", "holds an empty filter")
	}
	of := make([]Filter, len(g.of))
	for i, f := range g.of {
		var err error
		if of[i], err = substitute(f, facts); err != nil {
			return nil, err
		}
	}
	return join(g.how, of), nil
}

func substituteLeaf(l leaf, facts map[string]string) (Filter, error) {
	values := l.Values()
	for i, v := range values {
		if v.kind != stringKind || !placeholder.MatchString(v.text) {
			continue
		}
		name, _ := strings.CutPrefix(v.text, "$")
		if !strings.HasPrefix(name, "$") {
			fact, known := facts[name]
			if !known {
				return nil, l.value(i).fail(fmt.Sprintf("%s stands for nothing here", clip(v.text)))
			}
			name = fact
		}
		values[i].text = name
	}
	l.values = values
	return l.op.node(l), nil
}
