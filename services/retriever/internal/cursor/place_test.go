package cursor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

func TestAPlaceIsReadBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := cursor.NewSigner(cursor.RandomKey(), func() time.Time { return now })
	o := owner("acme", "docs", "pump")
	for _, want := range []cursor.Place{
		{},
		{KBID: 1 << 60, Generation: 1 << 60, Subspace: strings.Repeat("s", 64), DocID: strings.Repeat("é", messages.MaxDocIDBytes/2), Ordinal: 1<<31 - 1},
	} {
		text := s.SealPlace(o, want)
		if got, err := s.OpenPlace(o, text); err != nil || got != want {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
		if len(text) > cursor.PlaceBound() {
			t.Errorf("%d bytes, over the bound of %d", len(text), cursor.PlaceBound())
		}
		for name, other := range map[string]cursor.Owner{
			"another tenant": owner("globex", "docs", "pump"), "another knowledge base": owner("acme", "doc", "pump"), "another request": owner("acme", "docs", "seal"),
		} {
			if _, err := s.OpenPlace(other, text); code(err) != messages.CodeCursorInvalid {
				t.Errorf("%s: got %v, want CURSOR_INVALID", name, err)
			}
		}
		if _, err := s.Open(o, text); code(err) != messages.CodeCursorInvalid {
			t.Errorf("as a page: got %v, want CURSOR_INVALID", err)
		}
	}
	if _, err := s.OpenPlace(o, s.Seal(o, page(2, true))); code(err) != messages.CodeCursorInvalid {
		t.Errorf("a page as a place: got %v, want CURSOR_INVALID", err)
	}
	text := s.SealPlace(o, cursor.Place{DocID: "a"})
	now = now.Add(cursor.MaxAge + 2*time.Second)
	if _, err := s.OpenPlace(o, text); code(err) != messages.CodeCursorExpired {
		t.Errorf("after 15 minutes: got %v, want CURSOR_EXPIRED", err)
	}
}

// Whatever is sent, even under the right key, is a place or CURSOR_INVALID.
func FuzzOpenPlace(f *testing.F) {
	s := cursor.NewSigner([]byte("0123456789abcdef"), time.Now)
	o := owner("acme", "docs", "pump")
	f.Add(s.SealPlace(o, cursor.Place{Subspace: "a", DocID: "b", Ordinal: 3}))
	f.Add("")
	f.Add("AgID")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.OpenPlace(o, text); err != nil && code(err) != messages.CodeCursorInvalid && code(err) != messages.CodeCursorExpired {
			t.Errorf("got %v", err)
		}
	})
}
