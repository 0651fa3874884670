package filter

import "github.com/weir-project/weir/pkg/messages"

// OfRetrieval reads and binds the filters of a retrieval configuration, which may be nil: filter and
// filterExpression, each whole, joined by AND. given is false, and the filter to be left alone, where there
// is neither. Errors are VALIDATION_ERROR with the path of the fault.
func OfRetrieval(c *messages.RetrievalConfiguration, limits Limits, schema messages.MetadataSchema) (b Bound, given bool, err error) {
	const root = "retrievalConfiguration."
	text, expressed, err := c.Expression()
	if err != nil || c == nil {
		return Bound{}, false, err
	}
	var all []Bound
	binder := SchemaBinder{Schema: schema, Limits: limits}
	add := func(f Filter, err error) error {
		if err != nil {
			return err
		}
		b, err := binder.Bind(f)
		all = append(all, b)
		return err
	}
	if !absent(c.Filter) {
		if err := add(ParseJSON(root+"filter", c.Filter, limits)); err != nil {
			return Bound{}, false, err
		}
	}
	if expressed {
		if err := add(ParseExpression(root+"filterExpression", text, limits)); err != nil {
			return Bound{}, false, err
		}
	}
	return Conjunction(all...), len(all) > 0, nil
}
