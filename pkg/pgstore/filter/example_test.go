package filter_test

import (
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

func Example() {
	schema := messages.MetadataSchema{{Name: "category", Type: messages.TypeString}, {Name: "score", Type: messages.TypeLong}}
	f, err := filter.ParseExpression("filterExpression", "category = 'art' AND NOT score < 60", filter.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := filter.Canonical(f)
	fmt.Println(string(text))
	bound, err := filter.Bind(f, schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bound.SQL("d.live_typed", 1))
	fmt.Println(bound.Match(json.RawMessage(`{"category":"art"}`)))
	// Output:
	// {"andAll":[{"equals":{"key":"category","value":"art"}},{"notAll":[{"lessThan":{"key":"score","value":60}}]}]}
	// (d.live_typed @> $1::jsonb AND NOT ((coalesce(jsonb_typeof((d.live_typed -> $2::text)) = 'number', false) AND (d.live_typed -> $2::text) < $3::jsonb))) [{"category":"art"} score 60]
	// true <nil>
}
