package ingester_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/pdf/pdftest"
	"github.com/weir-project/weir/services/ingester/internal/worker"
)

// TestAPasswordOpensAtTheRequestDoorAndIsStoredNowhere submits a protected file by both doors.
func TestAPasswordOpensAtTheRequestDoorAndIsStoredNowhere(t *testing.T) {
	l := newLab(t, nil)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pool := worker.New(worker.Config{CacheDir: filepath.Join(cache, "weir", "parse")})
	t.Cleanup(pool.Close)
	if err := pool.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.intake.UnlockWith(pool)
	const password = "open sesame"
	file := pdftest.Locked("BT /F1 12 Tf 72 700 Td (Behind the lock) Tj ET", password)
	body := `{"docId":"d.pdf","data":"` + base64.StdEncoding.EncodeToString(file) + `"}`
	with := func(value string) map[string]string { return map[string]string{messages.HeaderPassword: value} }

	_, err = l.intake.Submit(t.Context(), l.from(body, with("open%20sesame")))
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeValidation || e.Field != messages.HeaderPassword {
		t.Errorf("by the stream: got %v, want a refusal that names the header", err)
	}
	for name, c := range map[string]struct {
		header string
		code   messages.Code
	}{
		"wrong": {"wrong", messages.CodePasswordRequired}, "not encoded": {"%zz", messages.CodeValidation}, "too long": {strings.Repeat("x", 1025), messages.CodeValidation},
	} {
		from := l.from(body, with(c.header))
		from.Request = true
		if e, ok := messages.AsError(func() error { _, err := l.intake.Submit(t.Context(), from); return err }()); !ok || e.Code != c.code {
			t.Errorf("%s: got %v, want %s", name, e, c.code)
		}
	}
	for i, want := range []bool{false, true} {
		from := l.from(body, with("open%20sesame"))
		from.Request = true
		v, err := l.intake.Submit(t.Context(), from)
		if err != nil || v.Reply.Unchanged != want {
			t.Fatalf("submit %d: got %+v, error %v", i, v.Reply, err)
		}
		for _, m := range v.Messages {
			if strings.Contains(string(m.Body), "sesame") {
				t.Error("a message holds the password")
			}
		}
	}
	var stored []byte
	if err := l.pool.QueryRow(t.Context(), "SELECT string_agg(data, '' ORDER BY part) FROM blob_parts").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	doc, err := pool.Parse(t.Context(), worker.Input{Size: int64(len(stored)), Open: func(context.Context) io.Reader { return bytes.NewReader(stored) }})
	if err != nil || doc.Text != "Behind the lock\n" {
		t.Errorf("what is stored reads %q, error %v", doc.Text, err)
	}
	if n := l.count("SELECT count(*) FROM document_versions v WHERE v::text LIKE '%sesame%'") + l.count("SELECT count(*) FROM document_receipts r WHERE r::text LIKE '%sesame%'"); n != 0 {
		t.Errorf("%d rows hold the password", n)
	}
}
