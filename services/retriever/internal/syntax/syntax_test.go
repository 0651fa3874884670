package syntax_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/lexical"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/syntax"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func analyzer(tb testing.TB) *lexical.Analyzer {
	tb.Helper()
	a, err := lexical.Lookup(lexical.Default)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ plain, match, prefixes string }{
		"pump seals":                   {"pump|seals", "", ""},
		"+pumps -seal":                 {"pumps", "('pump') & !('seal')", ""},
		`"the pump seals" x`:           {"the pump seals|x", "('the' <1> 'pump' <1> 'seal')", ""},
		`-"pump seal" rotor`:           {"rotor", "!('pump' <1> 'seal')", ""},
		"m12* rotor":                   {"rotor", "", "m12"},
		"+m12*":                        {"", "('m12':*)", "m12"},
		"-m12* rotor":                  {"rotor", "!('m12':*)", ""},
		"水泵 +轴承":                       {"水泵|轴承", "('轴' <1> '承')", ""},
		"水*":                           {"", "", "水"},
		`5\" e-mail \+x a*b - + rotor`: {`5"|e-mail|+x|a*b|rotor`, "", ""},
		"+e-mail":                      {"e-mail", "('e' <1> 'mail')", ""},
		"e-ma*":                        {"e-ma", "('e' <1> 'ma':*)", ""},
		`"" * rotor`:                   {"rotor", "", ""},
		`+o'brien`:                     {"o'brien", "('o''brien')", ""},
	} {
		q, err := syntax.Parse(analyzer(t), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var prefixes []string
		for _, p := range q.Prefixes {
			prefixes = append(prefixes, p.Lexeme)
		}
		plain := strings.ReplaceAll(q.Plain, "\n", "|")
		if got := pgstore.Condition(q.Clauses); plain != want.plain || got != want.match || strings.Join(prefixes, " ") != want.prefixes {
			t.Errorf("%s: got %q, %q, %v; want %+v", text, plain, got, prefixes, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		`rotor "pump seal`:        "has a quote at character 6 that is not closed",
		"-seal":                   "says nothing to look for, only what to leave out",
		"水 a*":                    "has a prefix at character 2 that is shorter than 2 characters",
		"aa* bb* cc* dd* ee*":     "has more than 4 prefixes",
		strings.Repeat("+x ", 65): "has more than 64 conditions",
	} {
		_, err := syntax.Parse(analyzer(t), text)
		if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field != "retrievalQuery.text" || e.Message != reason {
			t.Errorf("%.40s: got %v, want %q", text, err, reason)
		}
	}
	if _, err := syntax.Parse(analyzer(t), strings.Repeat("word ", 800)); err != nil {
		t.Errorf("many plain words: %v", err)
	}
}

// What a query asks for is found in a text that says just that, and no input makes the parser fail otherwise.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`+a -"b c" d* e`, `"`, `\`, `+`, `-*`, `"\"" x`, "水*", "+\"\"", "a\\* b"} {
		f.Add(s)
	}
	a := analyzer(f)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := syntax.Parse(a, text)
		if err != nil {
			if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation {
				t.Fatalf("got %v, want a VALIDATION_ERROR", err)
			}
			return
		}
		if len(q.Clauses) > 64+len(text) || q.Plain == "" && len(q.Prefixes) == 0 {
			t.Fatalf("got %s", fmt.Sprint(q))
		}
	})
}
