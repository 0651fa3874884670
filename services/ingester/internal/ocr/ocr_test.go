package ocr_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/ocr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ocr command")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return "'" + file + "'"
}

func command(t *testing.T, cfg ocr.Config) *ocr.Command {
	t.Helper()
	c, err := ocr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACommandReadsAnImage(t *testing.T) {
	t.Setenv("WEIR_TEST_SECRET", "secret")
	c := command(t, ocr.Config{Line: script(t, `echo "$1|$3|$WEIR_TEST_SECRET"; cat "$2"`) + ` -in {input} "two words"`})
	got, err := c.Recognise(t.Context(), []byte("\x89PNG the image"))
	if want := "-in|two words|\n"; err != nil || !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "PNG the image") {
		t.Errorf("got %q, error %v", got, err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-ocr-*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
}

func TestLimitsOfACommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg  ocr.Config
		code messages.Code // empty: not the document's fault
		says string
	}{
		"time":     {ocr.Config{Line: script(t, "sleep 60 & sleep 60") + " {input}", Timeout: 200 * time.Millisecond}, messages.CodeParseLimit, "limit of 200ms"},
		"output":   {ocr.Config{Line: script(t, "yes") + " {input}", OutputBytes: 1000}, messages.CodeParseLimit, "limit of 1000 bytes"},
		"failure":  {ocr.Config{Line: script(t, "exit 3") + " {input}"}, messages.CodeNoText, "exit status 3"},
		"no start": {ocr.Config{Line: "/nonexistent {input}"}, "", "start OCR command"},
	} {
		_, err := command(t, test.cfg).Recognise(t.Context(), []byte("x"))
		document, _ := messages.AsError(err)
		if err == nil || !strings.Contains(err.Error(), test.says) || (document == nil) != (test.code == "") || document != nil && document.Code != test.code {
			t.Errorf("%s: got %v, want %s saying %q", name, err, test.code, test.says)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := command(t, ocr.Config{Line: script(t, "sleep 60") + " {input}"}).Recognise(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("context ended: got %v", err)
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "tesseract", "{input}", "tesseract 'x {input}", "   "} {
		if _, err := ocr.New(ocr.Config{Line: line}); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

// TestTesseract reads drawn letters with the real program, where it is installed.
func TestTesseract(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tesseract"); err != nil {
		t.Skip("tesseract is not installed")
	}
	page := image.NewGray(image.Rect(0, 0, 400, 200))
	for i := range page.Pix {
		page.Pix[i] = 255
	}
	bar := func(x, y, w, h int) {
		for dy := range h {
			for dx := range w {
				page.SetGray(x+dx, y+dy, color.Gray{})
			}
		}
	}
	for i := range 3 { // three times the letter H
		x := 60 + i*80
		bar(x, 60, 10, 60)
		bar(x+35, 60, 10, 60)
		bar(x, 85, 45, 10)
	}
	var data bytes.Buffer
	if err := png.Encode(&data, page); err != nil {
		t.Fatal(err)
	}
	got, err := command(t, ocr.Config{Line: "tesseract {input} stdout"}).Recognise(t.Context(), data.Bytes())
	if err != nil || !strings.Contains(got, "H") {
		t.Errorf("got %q, error %v", got, err)
	}
}
