package parse

import (
	"strings"
	"testing"
)

// TestOddFindsEveryByteAtEveryPlace compares eight bytes at a time with one.
func TestOddFindsEveryByteAtEveryPlace(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 20 {
			for _, around := range []string{" ", "~", "a"} {
				text := strings.Repeat(around, at) + string([]byte{byte(c)}) + strings.Repeat(around, 19-at)
				want := len(text)
				if c < ' ' || c >= 0x7f {
					want = at
				}
				if got := odd(text, 0); got != want {
					t.Errorf("odd(%q): got %d, want %d", text, got, want)
				}
			}
		}
	}
	if got := odd("\x00\x00\x7f\xff12345678", 3); got != 3 {
		t.Errorf("from 3: got %d, want 3", got)
	}
	if got := odd("\x00\x00\x7f\xff12345678", 4); got != 12 {
		t.Errorf("from 4: got %d, want 12", got)
	}
}
