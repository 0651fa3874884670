package filter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

func TestExpressionsBecomeTrees(t *testing.T) {
	t.Parallel()
	leaf := func(op, key, value string) string {
		return `{"` + op + `":{"key":"` + key + `","value":` + value + `}}`
	}
	eq := func(key, value string) string { return leaf("equals", key, value) }
	for _, c := range []struct{ id, text, want string }{
		{"CT-63", `a = 1 OR b = 2 AND NOT c = 3`, `{"orAll":[` + eq("a", "1") + `,{"andAll":[` + eq("b", "2") + `,{"notAll":[` + eq("c", "3") + `]}]}]}`},
		{"CT-63", `(a = 1 OR b = 2) AND NOT c = 3`, `{"andAll":[{"orAll":[` + eq("a", "1") + `,` + eq("b", "2") + `]},{"notAll":[` + eq("c", "3") + `]}]}`},
		{"CT-63", `NOT NOT a = 1`, `{"notAll":[{"notAll":[` + eq("a", "1") + `]}]}`},
		{"CT-63", `NOT (a = 1 or B = 2)`, `{"notAll":[{"orAll":[` + eq("a", "1") + `,` + eq("B", "2") + `]}]}`},
		{"CT-63", `a=1 and b=2 and c=3`, `{"andAll":[` + eq("a", "1") + `,` + eq("b", "2") + `,` + eq("c", "3") + `]}`},
		{"CT-63", `((a = 1))`, eq("a", "1")},
		{"CT-64", `author = 'O''Brien' AND q = "say ""hi"""`, `{"andAll":[` + eq("author", `"O'Brien"`) + `,` + eq("q", `"say \"hi\""`) + `]}`},
		{"CT-64", `q = 'a\n\t\\\'\"\r\b\f'`, eq("q", `"a\n\t\\'\"\r\b\f"`)},
		{"CT-64", `q = 'say "hi"'`, eq("q", `"say \"hi\""`)},
		{"CT-64", `x = ''`, eq("x", `""`)},
		{"CT-64", `a=+12`, eq("a", "12")},
		{"CT-64", `r >= -1.5e2`, leaf("greaterThanOrEquals", "r", "-150")},
		{"CT-64", `a = 9007199254740993`, eq("a", "9007199254740993")},
		{"CT-64", `a = -9223372036854775808`, eq("a", "-9223372036854775808")},
		{"CT-64", `a = 0.10000000000000000000000000000000001`, eq("a", "0.10000000000000000000000000000000001")},
		{"CT-64", `a = TRUE OR a = falsE`, `{"orAll":[` + eq("a", "true") + `,` + eq("a", "false") + `]}`},
		{"CT-64", `price>10and(qty<5)`, `{"andAll":[` + leaf("greaterThan", "price", "10") + `,` + leaf("lessThan", "qty", "5") + `]}`},
		{"CT-64", `a-5 > 3`, leaf("greaterThan", "a-5", "3")},
		{"CT-64", "`order by` = 1", eq("order by", "1")},
		{"CT-64", "`and` = 1 AND `a``b` = 2", `{"andAll":[` + eq("and", "1") + `,` + eq("a`b", "2") + `]}`},
		{"CT-64", `a == 1`, eq("a", "1")},
		{"CT-64", `a <> 1`, leaf("notEquals", "a", "1")},
		{"CT-64", `a != 1`, leaf("notEquals", "a", "1")},
		{"CT-64", `產品名 = '手冊'`, eq("產品名", `"手冊"`)},
		{"CT-64", `$a_1.b = 1`, eq("$a_1.b", "1")},
		{"CT-64", `İn = 1`, eq("İn", "1")},
		{"CT-64", "a\t=\r\n1", eq("a", "1")},
		{"CT-67", `a not between 60 and 90`, `{"orAll":[` + leaf("lessThan", "a", "60") + `,` + leaf("greaterThan", "a", "90") + `]}`},
		{"CT-67", `a BETWEEN 60 AND 90 AND b = 1`, `{"andAll":[{"andAll":[` + leaf("greaterThanOrEquals", "a", "60") + `,` + leaf("lessThanOrEquals", "a", "90") + `]},` + eq("b", "1") + `]}`},
		{"CT-67", `a IN ('x', "y") and a not in (1)`, `{"andAll":[` + leaf("in", "a", `["x","y"]`) + `,` + leaf("notIn", "a", `[1]`) + `]}`},
		{"CT-67", `a IS NULL AND a is not null AND a = null AND a != NULL AND a == NULL AND a <> NULL`, `{"andAll":[{"isNull":{"key":"a"}},{"isNotNull":{"key":"a"}},{"isNull":{"key":"a"}},{"isNotNull":{"key":"a"}},{"isNull":{"key":"a"}},{"isNotNull":{"key":"a"}}]}`},
		{"CT-70", `metadata.category = 'art'`, eq("category", `"art"`)},
		{"CT-70", `metadataMap.category = 'art'`, eq("category", `"art"`)},
		{"CT-70", `metadata.a.b = 1`, eq("a.b", "1")},
	} {
		t.Run(c.id, func(t *testing.T) {
			got := canonical(t, mustExpression(t, c.text))
			if got != c.want {
				t.Errorf("%s: got %s, want %s", c.text, got, c.want)
			}
			if again := canonical(t, mustJSON(t, got)); again != got {
				t.Errorf("%s became %s", got, again)
			}
		})
	}
}

func TestPositionsOfErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, text string
		pos      int
	}{
		{"CT-65", `tier = gold`, 7},
		{"CT-65", `tier IN ()`, 9},
		{"CT-65", `a = 1 AND`, 9},
		{"CT-65", `(a = 1 OR b = 2`, 15},
		{"CT-65", `year BETWEEN 2024 2026`, 18},
		{"CT-65", `a >= NULL`, 5},
		{"CT-65", `name LIKE 'x'`, 5},
		{"CT-65", `lower(a) = 'x'`, 5},
		{"CT-65", ``, 0},
		{"AF-G18", "  \n ", 4},
		{"AF-G01", `a = 1 b = 2`, 6},
		{"AF-G01", `a = 1)`, 5},
		{"AF-G02", `()`, 1},
		{"AF-G03", `a ! 1`, 2},
		{"AF-G03", `a = = 1`, 4},
		{"AF-G04", `a IN (1,)`, 8},
		{"AF-G04", `a IN (1, NULL)`, 9},
		{"AF-G04", `a IN 1`, 5},
		{"AF-G04", `a IN (1 2)`, 8},
		{"AF-G04", `a NOT LIKE 'x'`, 6},
		{"AF-G04", `a NOT = 1`, 6},
		{"AF-G05", `a BETWEEN NULL AND 1`, 10},
		{"AF-G05", `a BETWEEN 1 AND NULL`, 16},
		{"AF-G05", `a BETWEEN 1 OR 2`, 12},
		{"AF-G05", `a BETWEEN 1 AND`, 15},
		{"AF-G06", `a IS 5`, 5},
		{"AF-G06", `a IS NOT 5`, 9},
		{"AF-G06", `a < null`, 4},
		{"AF-G07", `a = 'x`, 4},
		{"AF-G07", `a = "x'`, 4},
		{"AF-G07", `a = 'x''`, 4},
		{"AF-G08", `a = 'x\q'`, 7},
		{"AF-G08", `a = 'x\`, 6},
		{"AF-G09", `a = 9223372036854775808`, 4},
		{"AF-G09", `a = -9223372036854775809`, 4},
		{"AF-G09", `a = - 5`, 4},
		{"AF-G10", `a = 5.`, 6},
		{"AF-G10", `a = 5. AND`, 6},
		{"AF-G10", `a = .5`, 4},
		{"AF-G10", `a = 5e`, 6},
		{"AF-G10", `a = 5e+x`, 7},
		{"AF-G12", `a = b`, 4},
		{"AF-G12", `'a' = 'b'`, 0},
		{"AF-G13", `5a = 1`, 0},
		{"AF-G13", `-a = 1`, 0},
		{"AF-G14", "`` = 1", 0},
		{"AF-G14", "a = 1 AND `x", 10},
		{"AF-G15", `and = 1`, 0},
		{"AF-G15", `a = AND`, 4},
		{"AF-G17", `a = 1; b = 2`, 5},
		{"AF-G17", `a = 1 -- c`, 6},
		{"AF-G17", `a + 1 = 2`, 2},
		{"AF-G17", `a = 1 /* */`, 6},
		{"AF-G17", `a = 1 ORDER BY a`, 6},
		{"AF-G17", `a = (1)`, 4},
		{"code points", `產品 = 手冊`, 5},
		{"code points", `a = '😀' AND`, 11},
		{"not text", "a = '\xff'", 5},
		{"not text", "a = 1 \x00", 6},
	} {
		t.Run(c.id, func(t *testing.T) { wantPosition(t, c.text, c.pos) })
	}
}

func TestExpressionsFind(t *testing.T) {
	t.Parallel()
	lib := newLibrary(t)
	for _, c := range []struct{ id, text, want string }{
		{"CT-67", `score NOT BETWEEN 60 AND 90`, "d2 d3"},
		{"CT-67", `category NOT IN ('art')`, "d1 d2 d3"},
		{"CT-67", `title = NULL`, "d4"},
		{"CT-67", `title != NULL`, "d1 d2 d3"},
		{"CT-67", `NOT title = '手冊'`, "d1 d2 d4"},
		{"CT-67", `title != '手冊'`, "d1 d2"},
		{"CT-68", `category = 'x'' OR ''1''=''1'`, ""},
		{"CT-70", `metadata.category = 'art'`, "d4"},
		{"CT-56", `category = 'science' OR score > 90 AND year = 2026`, "d2 d3"},
	} {
		t.Run(c.id, func(t *testing.T) {
			if got := lib.find(t, mustBind(t, mustExpression(t, c.text))); got != c.want {
				t.Errorf("%s: got %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// TestValuesAreArgumentsOnly is CT-68: neither values nor names of fields are in the statement.
func TestValuesAreArgumentsOnly(t *testing.T) {
	t.Parallel()
	name := `x' OR "1"='1`
	schema := messages.MetadataSchema{{Name: name, Type: messages.TypeString}, {Name: "tags", Type: messages.TypeStringList}}
	text := `{"andAll":[{"equals":{"key":"x' OR \"1\"='1","value":"evil'--"}},{"startsWith":{"key":"x' OR \"1\"='1","value":"evil'--"}},` +
		`{"in":{"key":"tags","value":["evil'--"]}},{"isNull":{"key":"x' OR \"1\"='1"}},{"notEquals":{"key":"tags","value":"evil'--"}}]}`
	b, err := filter.Bind(mustJSON(t, text), schema)
	if err != nil {
		t.Fatal(err)
	}
	sql, args := b.SQL("d.live_typed", 7)
	if strings.Contains(sql, "evil") || strings.Contains(sql, "1'") || strings.Contains(sql, "tags") {
		t.Errorf("the statement holds values: %s", sql)
	}
	if !strings.Contains(sql, "$7") || strings.Contains(sql, "$6") {
		t.Errorf("the placeholders do not begin at 7: %s", sql)
	}
	for _, a := range args {
		if _, ok := a.(string); !ok {
			t.Errorf("argument %v is a %T", a, a)
		}
	}
}

func TestExpressionsFailAtBinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, text, holds string }{
		{"CT-69", `score IN (1, 'x')`, `filterExpression: position 13: field "score": must be of type long, got a string`},
		{"CT-69", `title BETWEEN 'a' AND 'b'`, `filterExpression: position 0: greaterThanOrEquals does not apply to field "title" of type string`},
		{"CT-70", `metadata.a.b = 1`, `field "a.b" is not declared`},
		{"CT-35", `category = 'a' AND NOT (nope = 1)`, `filterExpression: position 24: field "nope" is not declared`},
		{"D-23", `tenant = 't2'`, `field "tenant" is internal`},
		{"D-23", "`metadata.tenant` = 't2'", `field "tenant" is internal`},
		{"D-07", "title = 'a\x00b'", `position 8`},
	} {
		t.Run(c.id, func(t *testing.T) { wantInvalid(t, c.text, expression(c.text, fixtureSchema), c.holds) })
	}
}

func TestNumbersKeepTheirValue(t *testing.T) {
	t.Parallel()
	schema := messages.MetadataSchema{{Name: "l", Type: messages.TypeLong}, {Name: "d", Type: messages.TypeDouble}}
	for _, c := range []struct {
		text, metadata string
		want           bool
	}{
		{`l = 9007199254740993`, `{"l":9007199254740993}`, true},
		{`l = 9007199254740993`, `{"l":9007199254740992}`, false},
		{`l > 9007199254740992`, `{"l":9007199254740993}`, true},
		{`l = 9.223372036854775807e18`, `{"l":9223372036854775807}`, true},
		{`d = 1e-400`, `{"d":0}`, true},
		{`d = 0.1`, `{"d":0.1000000000000000055511151231257827}`, true},
		{`d = -0.0`, `{"d":0}`, true},
	} {
		f := mustExpression(t, c.text)
		b, err := filter.Bind(f, schema)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Match(json.RawMessage(c.metadata)); err != nil || got != c.want {
			t.Errorf("%s of %s: %v, %v", c.text, c.metadata, got, err)
		}
	}
	wantInvalid(t, "1e400", fromJSON(`{"equals":{"key":"d","value":1e400}}`, schema), "must be a finite number")
	wantInvalid(t, "exponent", fromJSON(`{"equals":{"key":"l","value":1e999999999999999999999}}`, schema), "must be an integer")
}
