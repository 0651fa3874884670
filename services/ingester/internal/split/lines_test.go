package split

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all is the lines of a text as number and text, ! for one that is too long.
func all(in io.Reader, limit int) (out []string, err error) {
	l := newLines(in, limit)
	for {
		line, tooLong, err := l.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		text := string(line.Text)
		if tooLong {
			text = "!"
		}
		out = append(out, fmt.Sprint(line.Number, text))
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*readBuffer)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n\n", nil},
		{"a", []string{"1a"}},
		{"a\n", []string{"1a"}},
		{"\xef\xbb\xbfa\r\n\r\n b \n\nc", []string{"1a", "3b", "5c"}},
		{"a\n" + long + "\nb", []string{"1a", "2!", "3b"}},
		{long, []string{"1!"}},
		{"12345678\r\n123456789\n", []string{"112345678", "2123456789"}}, // a carriage return or a space more is no harm
		{"12345678901\n", []string{"1!"}},
	} {
		for name, in := range map[string]io.Reader{"whole": strings.NewReader(c.text), "bytes": iotest.OneByteReader(strings.NewReader(c.text))} {
			if got, err := all(in, 8); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%.40q, %s: got %.100q (%v), want %q", c.text, name, got, err, c.want)
			}
		}
	}
	broken := errors.New("broken")
	if got, err := all(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 8); !errors.Is(err, broken) || !slices.Equal(got, []string{"1a"}) {
		t.Errorf("got %q (%v), want the error and no half line", got, err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\n\nb\r\n", uint8(4))
	f.Add("\xef\xbb\xbf{}\n", uint8(1))
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		got, err := all(iotest.HalfReader(strings.NewReader(text)), int(limit))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, line := range strings.SplitAfter(text, "\n") {
			short := line
			if i == 0 {
				short = strings.TrimPrefix(line, string(utf8Mark))
			}
			switch short = strings.TrimSpace(short); {
			case len(line) > int(limit)+2:
				want = append(want, fmt.Sprint(i+1, "!"))
			case short != "":
				want = append(want, fmt.Sprint(i+1, short))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
