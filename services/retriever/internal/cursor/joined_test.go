package cursor_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

// joined has texts that up to three chunks hold each.
func joined(texts int, explain bool) (j cursor.Joined, holders int) {
	rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a fixed seed
	j = cursor.Joined{Fusion: "WEIGHT", DenseWeight: 0.7, TextWeight: 0.3}
	for i := range int64(16) {
		j.KBs = append(j.KBs, cursor.Origin{KBID: 1 << 62, Generation: i << 58, Fallback: i%2 == 0})
	}
	for _, e := range page(texts, explain).Entries {
		t := cursor.Text{Entry: e, Holders: []cursor.Holder{{KB: rng.IntN(16), ChunkID: e.ChunkID, Score: e.Score}}}
		for range rng.IntN(3) {
			t.Holders = append(t.Holders, cursor.Holder{KB: 15, ChunkID: rng.Int64(), Score: rng.Float64()})
		}
		holders += len(t.Holders)
		j.Texts = append(j.Texts, t)
	}
	return j, holders
}

func TestWhatIsLeftOfSeveralIsReadBack(t *testing.T) {
	t.Parallel()
	s := cursor.NewSigner(cursor.RandomKey(), time.Now)
	o := owner("acme", messages.AllScope, "pump")
	for _, explain := range []bool{false, true} {
		for _, n := range []int{1, 2, 20, 4000} {
			want, holders := joined(n, explain)
			text := s.SealJoined(o, want)
			if got, err := s.OpenJoined(o, text); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d texts: got something else (%v)", n, err)
			}
			if bound := cursor.JoinedBound(len(want.KBs), n, holders, explain); len(text) > bound {
				t.Errorf("%d texts: %d bytes, over the bound of %d", n, len(text), bound)
			}
			if _, err := s.Open(o, text); code(err) != messages.CodeCursorInvalid {
				t.Errorf("as that of one knowledge base: got %v, want CURSOR_INVALID", err)
			}
			if _, err := s.OpenJoined(owner("acme", "docs", "pump"), text); code(err) != messages.CodeCursorInvalid {
				t.Errorf("at another door: got %v, want CURSOR_INVALID", err)
			}
		}
	}
	none, _ := joined(0, false)
	if got := s.SealJoined(o, none); got != "" {
		t.Errorf("nothing left: got %q, want no cursor", got)
	}
	if _, err := s.OpenJoined(o, s.Seal(o, page(2, true))); code(err) != messages.CodeCursorInvalid {
		t.Errorf("a page of one as that of several: got %v, want CURSOR_INVALID", err)
	}
}

func TestAPlaceAmongSeveralIsReadBack(t *testing.T) {
	t.Parallel()
	s := cursor.NewSigner(cursor.RandomKey(), time.Now)
	o := owner("acme", messages.AllScope, "pump")
	for _, want := range []cursor.JoinedPlace{
		{},
		{KB: 15},
		{KB: 15, Place: cursor.Place{KBID: 1 << 60, Generation: 1 << 60, Subspace: strings.Repeat("s", 64), DocID: strings.Repeat("é", messages.MaxDocIDBytes/2), Ordinal: 1<<31 - 1}},
	} {
		text := s.SealJoinedPlace(o, want)
		if got, err := s.OpenJoinedPlace(o, text); err != nil || got != want {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
		if len(text) > cursor.PlaceBound() {
			t.Errorf("%d bytes, over the bound of %d", len(text), cursor.PlaceBound())
		}
		if _, err := s.OpenPlace(o, text); code(err) != messages.CodeCursorInvalid {
			t.Errorf("as that of one knowledge base: got %v, want CURSOR_INVALID", err)
		}
	}
}

// Whatever is sent, even under the right key, is read or CURSOR_INVALID.
func FuzzOpenJoined(f *testing.F) {
	s := cursor.NewSigner([]byte("0123456789abcdef"), time.Now)
	o := owner("acme", messages.AllScope, "pump")
	some, _ := joined(2, true)
	f.Add(s.SealJoined(o, some))
	f.Add(s.SealJoinedPlace(o, cursor.JoinedPlace{KB: 1, Place: cursor.Place{DocID: "a"}}))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		_, list := s.OpenJoined(o, text)
		_, place := s.OpenJoinedPlace(o, text)
		for _, err := range []error{list, place} {
			if err != nil && code(err) != messages.CodeCursorInvalid && code(err) != messages.CodeCursorExpired {
				t.Errorf("got %v", err)
			}
		}
	})
}
