package cursor_test

import (
	"encoding/base64"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func page(entries int, explain bool) cursor.Page {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed
	p := cursor.Page{KBID: 7, Generation: 1 << 40, Fusion: "WEIGHT", Fallback: true, DenseWeight: 0.7, TextWeight: 0.3}
	for range entries {
		e := cursor.Entry{ChunkID: rng.Int64(), Score: rng.Float64(), Omitted: rng.IntN(2) == 0}
		e.Raw, e.Scaled = e.Score, rng.Float64()
		if explain {
			e.Raw = rng.Float64()
			e.Dense, e.Text = &cursor.Share{Rank: 1000, Raw: rng.Float64(), Part: 0.5}, &cursor.Share{Raw: -1, Part: 0}
		}
		p.Entries = append(p.Entries, e)
	}
	return p
}

func owner(tenant, kb, text string) cursor.Owner {
	hash, err := cursor.RequestHash(&messages.RetrieveRequest{KnowledgeBaseName: kb, Query: &messages.RetrievalQuery{Type: "TEXT", Text: text}, Cursor: text})
	if err != nil {
		panic(err)
	}
	return cursor.Owner{Tenant: tenant, KB: kb, Request: hash}
}

func code(err error) messages.Code {
	e, ok := messages.AsError(err)
	if !ok || e.Field != "cursor" {
		return ""
	}
	return e.Code
}

func TestACursorIsReadBack(t *testing.T) {
	t.Parallel()
	s := cursor.NewSigner(cursor.RandomKey(), time.Now)
	o := owner("acme", "docs", "pump")
	for _, explain := range []bool{false, true} {
		for _, n := range []int{1, 20, 2000} {
			want := page(n, explain)
			text := s.Seal(o, want)
			if got, err := s.Open(o, text); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d entries: got another page (%v)", n, err)
			}
			if len(text) > cursor.Bound(n, explain) {
				t.Errorf("%d entries: %d bytes, over the bound of %d", n, len(text), cursor.Bound(n, explain))
			}
		}
	}
	if got := s.Seal(o, page(0, false)); got != "" {
		t.Errorf("nothing left: got %q, want no cursor", got)
	}
}

func TestACursorIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	key := cursor.RandomKey()
	s := cursor.NewSigner(key, time.Now)
	text := s.Seal(owner("acme", "docs", "pump"), page(3, true))
	for name, o := range map[string]cursor.Owner{
		"another tenant": owner("globex", "docs", "pump"), "another knowledge base": owner("acme", "doc", "pump"), "another request": owner("acme", "docs", "seal"),
	} {
		if _, err := s.Open(o, text); code(err) != messages.CodeCursorInvalid {
			t.Errorf("%s: got %v, want CURSOR_INVALID", name, err)
		}
	}
	if _, err := cursor.NewSigner(cursor.RandomKey(), time.Now).Open(owner("acme", "docs", "pump"), text); code(err) != messages.CodeCursorInvalid {
		t.Errorf("another key: got %v, want CURSOR_INVALID", err)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] ^= 1
		if _, err := s.Open(owner("acme", "docs", "pump"), base64.RawURLEncoding.EncodeToString(data)); code(err) != messages.CodeCursorInvalid {
			t.Fatalf("byte %d changed: got %v, want CURSOR_INVALID", i, err)
		}
		data[i] ^= 1
	}
}

func TestACursorExpires(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := cursor.NewSigner(cursor.RandomKey(), func() time.Time { return now })
	o := owner("acme", "docs", "pump")
	text := s.Seal(o, page(3, false))
	now = now.Add(cursor.MaxAge - time.Second)
	if _, err := s.Open(o, text); err != nil {
		t.Errorf("at 15 minutes: %v", err)
	}
	now = now.Add(3 * time.Second)
	if _, err := s.Open(o, text); code(err) != messages.CodeCursorExpired {
		t.Errorf("after 15 minutes: got %v, want CURSOR_EXPIRED", err)
	}
}

// Whatever is sent as a cursor, even under the right key, is a page or CURSOR_INVALID.
func FuzzOpen(f *testing.F) {
	s := cursor.NewSigner([]byte("0123456789abcdef"), time.Now)
	o := owner("acme", "docs", "pump")
	f.Add(s.Seal(o, page(2, true)))
	f.Add("")
	f.Add("AQID")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.Open(o, text); err != nil && code(err) != messages.CodeCursorInvalid && code(err) != messages.CodeCursorExpired {
			t.Errorf("got %v", err)
		}
	})
}
