package messages

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorsSayCodeFieldAndMessage(t *testing.T) {
	for want, err := range map[string]error{
		"VALIDATION_ERROR: docId: is missing": Invalid("docId", "is missing"),
		"NOT_FOUND: dead letter 5":            Errorf(CodeNotFound, "dead letter %d", 5),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestAsErrorFindsAPermanentErrorInside(t *testing.T) {
	inner := Errorf(CodeNotFound, "gone")
	if e, ok := AsError(fmt.Errorf("get: %w", inner)); !ok || e != inner {
		t.Errorf("got %v, %v", e, ok)
	}
	for _, err := range []error{nil, errors.New("connection refused")} {
		if e, ok := AsError(err); ok || e != nil {
			t.Errorf("%v: got %v", err, e)
		}
	}
}

func TestErrorsAreCutAtCharacters(t *testing.T) {
	long := strings.Repeat("年", 2000)
	for _, e := range []*Error{Invalid(long, long), Errorf(CodeInternal, "%s", long)} {
		if len(e.Message) > maxMessageBytes || len(e.Field) > maxFieldBytes || !strings.HasSuffix(e.Message, "...") || !utf8.ValidString(e.Error()) {
			t.Errorf("message of %d bytes, field of %d", len(e.Message), len(e.Field))
		}
	}
	if e := Invalid("a", strings.Repeat("b", maxMessageBytes)); strings.HasSuffix(e.Message, ".") {
		t.Error("a message that fits was cut")
	}
}

func TestEnvelopesCarryErrors(t *testing.T) {
	e := &Error{Code: CodeValidation, Message: "is missing", Field: "docId"}
	env := Failure(e, "q-1")
	if env.RequestID != "q-1" {
		t.Errorf("request id %q", env.RequestID)
	}
	got, ok := AsError(env.Err())
	if !ok || *got != *e {
		t.Errorf("got %+v, want %+v", got, e)
	}
	if err := (Envelope{Code: CodeSuccess}).Err(); err != nil {
		t.Errorf("a success is the error %v", err)
	}
}

func TestCodesAreDistinctAndWellFormed(t *testing.T) {
	codes := stringConstants(t, "Code")
	if len(codes) < 30 {
		t.Fatalf("found only %d codes", len(codes))
	}
	seen := map[string]string{}
	for name, code := range codes {
		if !regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`).MatchString(code) {
			t.Errorf("%s = %q", name, code)
		}
		if seen[code] != "" {
			t.Errorf("%s and %s are both %q", name, seen[code], code)
		}
		seen[code] = name
	}
}

func TestSubmitRefNamesASubmit(t *testing.T) {
	for want, got := range map[string]string{
		"import-17": SubmitRef("import-17", StreamDocs, 8), "WEIR_DOCS:18446744073709551615": SubmitRef("", StreamDocs, 1<<64-1),
		"WEIR_DOCS:9": SubmitRef("no text \xff", StreamDocs, 9), "WEIR_DOCS:10": SubmitRef(strings.Repeat("x", 1001), StreamDocs, 10),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestEveryCodeIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllSubmatch(text, -1) {
		rows[string(m[1])]++
	}
	for name, code := range stringConstants(t, "Code") {
		if rows[code] != 1 {
			t.Errorf("docs/errors.md has %d rows of %s = %q", rows[code], name, code)
		}
		delete(rows, code)
	}
	for code := range rows {
		t.Errorf("docs/errors.md explains %q, which is no code", code)
	}
}
