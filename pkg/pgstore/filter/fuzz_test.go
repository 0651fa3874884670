package filter_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore/filter"
)

// FuzzExpression: never a panic, every error has a position inside the text, and what is accepted keeps
// its form through JSON.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		``, ` `, `a = 1`, `a = 1 OR b = 2 AND NOT c = 3`, `(a = 1 OR b = 2`, `author = 'O''Brien' AND q = "say ""hi"""`, `x = 'a\n\t\\\'\"'`, `x = 'a\q'`,
		`price>10and(qty<5)`, `a-5 > 3`, "`order by` = 1", "a = 1 AND `x", `a == TRUE`, `a <> null`, `a NOT BETWEEN -1.5e2 AND +3`, `a IN (1, 'x')`, `a NOT IN ()`,
		`a IS NOT NULL`, `metadata.a.b = 1`, `產品 = '手冊😀'`, `a = 9223372036854775808`, `a = 5.`, `a = 1e999999999999`, "a = '\xff'", "a = '\x00'",
		strings.Repeat("(", 40) + "a = 1", strings.Repeat("NOT ", 40) + "a = 1", "year = 2024 AND score >= 60 AND published < '2024-05-01'",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := filter.ParseExpression("e", text, filter.Limits{})
		if err != nil {
			var at *filter.ExpressionError
			if !errors.As(err, &at) || at.Pos < 0 || at.Pos > utf8.RuneCountInString(text) {
				t.Fatalf("%q: %v", text, err)
			}
			if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || !utf8.ValidString(e.Message) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		sameThroughJSON(t, tree)
	})
}

// FuzzJSON: never a panic, every error is a VALIDATION_ERROR, and what is accepted keeps its form.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `null`, ``, `{"equals":{"key":"category","value":"art"}}`, `{"in":{"key":"score","value":[1,2.5,true,"x"]}}`, `{"isNull":{"key":"year"}}`,
		`{"andAll":[{"orAll":[{"notAll":[{"startsWith":{"value":"產","key":"title"}}]}]}]}`, `{"andAll":[]}`, `{"equals":{"key":"a","value":null}}`,
		`{"equals":{"key":"a","value":1},"notEquals":{"key":"a","value":1}}`, `{"equals":{"key":"a","value":1e999999999}}`, `{"equals":{"key":"a","key":"b","value":[[]]}}`,
		`{"listContains":{"key":"tags","value":"\ud834\udd1e"}}`, `{"equals":{"key":"a","value":"\ud834"}}`, strings.Repeat(`{"notAll":[`, 30), `{"in":{"key":"a","value":[]}}`,
		`{"greaterThan":{"key":"published","value":"2024-05-01T00:00:00.123456789+02:00"}}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, err := filter.ParseJSON("f", raw, filter.Limits{})
		if err != nil {
			if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || !strings.HasPrefix(e.Field, "f") {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		sameThroughJSON(t, tree)
	})
}

func sameThroughJSON(t *testing.T, tree filter.Filter) {
	t.Helper()
	once, err := filter.Canonical(tree)
	if err != nil {
		t.Fatal(err)
	}
	again, err := filter.ParseJSON("f", once, filter.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", once, err)
	}
	if twice, err := filter.Canonical(again); err != nil || string(twice) != string(once) {
		t.Fatalf("%s became %s, %v", once, twice, err)
	}
	b, err := filter.Bind(tree, fixtureSchema)
	if err != nil {
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation {
			t.Fatalf("%s: %v", once, err)
		}
		return
	}
	sql, args := b.SQL("d.x", 1)
	if len(args) == 0 || strings.Count(sql, "(") != strings.Count(sql, ")") {
		t.Fatalf("%s: %s", once, sql)
	}
	for _, d := range fixtureDocs {
		if _, err := b.Match(json.RawMessage(d.metadata)); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzNumber: the canonical notation has the same value and is a fixed point.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0", "-0.0", "60.0", "6e1", "0.6E+2", "1e21", "1e22", "12345678901234567890123456789", "0.000000000000000000000012", "-1.50e-3", "1e-400", "1e99999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := filter.LiteralOf(json.Number(text))
		if err != nil {
			return
		}
		once, err := json.Marshal(l)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		l, err = filter.LiteralOf(json.Number(once))
		if err != nil {
			t.Fatalf("%q: %v", once, err)
		}
		if twice, err := json.Marshal(l); err != nil || string(twice) != string(once) {
			t.Fatalf("%q became %s, then %s, %v", text, once, twice, err)
		}
		if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
			return // too large to be worked out here
		}
		before, _ := new(big.Rat).SetString(text)
		if after, ok := new(big.Rat).SetString(string(once)); !ok || after.Cmp(before) != 0 {
			t.Fatalf("%q became %s", text, once)
		}
	})
}

// hostileTime is far over what any input takes, even with the race detector on a busy machine (0.1 s is
// usual), and far under what one would take whose time grows with the square of its size.
const hostileTime = 5 * time.Second

// TestHostileInputIsCheap: whatever comes within the limits, or far beyond them, is answered at once.
func TestHostileInputIsCheap(t *testing.T) {
	t.Parallel()
	leaf := `{"equals":{"key":"category","value":"a"}}`
	set := `{"in":{"key":"score","value":[` + strings.Repeat("9007199254740993,", 255) + `1]}}`
	for name, raw := range map[string]string{
		"open brackets":  strings.Repeat("[", 1<<20),
		"open objects":   strings.Repeat(`{"andAll":[`, 90_000),
		"deep":           strings.Repeat(`{"notAll":[`, 5000) + leaf + strings.Repeat("]}", 5000),
		"wide":           `{"orAll":[` + strings.Repeat(leaf+",", 20_000) + leaf + `]}`,
		"large sets":     `{"orAll":[` + strings.Repeat(set+",", 200) + set + `]}`,
		"long string":    `{"equals":{"key":"category","value":"` + strings.Repeat("年", 300_000) + `"}}`,
		"long key":       `{"equals":{"key":"` + strings.Repeat("k", 1_000_000) + `","value":1}}`,
		"long operator":  `{"` + strings.Repeat("o", 1_000_000) + `":1}`,
		"long number":    `{"equals":{"key":"score","value":` + strings.Repeat("9", 1_000_000) + `}}`,
		"long fraction":  `{"equals":{"key":"score","value":0.` + strings.Repeat("1", 1_000_000) + `}}`,
		"exponents":      `{"in":{"key":"score","value":[` + strings.Repeat("1e-1048576,", 255) + `1]}}`,
		"huge exponents": `{"in":{"key":"score","value":[` + strings.Repeat("1e9999999999999999,", 255) + `1]}}`,
		"many bytes":     strings.Repeat(" ", 64<<20),
	} {
		began := time.Now()
		err := fromJSON(raw, fixtureSchema)
		if took := time.Since(began); took > hostileTime {
			t.Errorf("%s took %s", name, took)
		}
		if e, ok := messages.AsError(err); ok && len(e.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(e.Error()))
		} else if !ok && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"parentheses": strings.Repeat("(", 1<<20), "NOTs": strings.Repeat("NOT ", 1<<20), "ANDs": strings.Repeat("a = 1 AND ", 200) + "a = 1",
		"quotes": strings.Repeat("'", 2047), "escapes": "a = '" + strings.Repeat(`\\`, 1020), "digits": "a = " + strings.Repeat("9", 2040),
		"exponent": "a = 1e" + strings.Repeat("9", 2040), "long": strings.Repeat("a", 64<<20), "not text": strings.Repeat("\xff", 1<<20),
	} {
		began := time.Now()
		err := expression(text, fixtureSchema)
		if took := time.Since(began); took > hostileTime {
			t.Errorf("%s took %s", name, took)
		}
		wantInvalid(t, name, err, "")
		if len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}
