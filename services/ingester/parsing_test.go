package ingester_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/services/ingester"
)

func TestSettingsOfParsing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string // empty: they are good
	}{
		"defaults":       {nil, ""},
		"good":           {[]string{"-pdf-engine", "gate", "-ocr-command", "tesseract {input} stdout", "-parse-wall", "10s"}, ""},
		"engine":         {[]string{"-pdf-engine", "other"}, "pdf-engine"},
		"OCR, no input":  {[]string{"-ocr-command", "tesseract"}, "ocr-command"},
		"negative":       {[]string{"-parse-pages", "-1"}, "parse-pages"},
		"negative clock": {[]string{"-parse-stall", "-1s"}, "parse-stall"},
	} {
		cfg := ingester.DefaultConfig()
		fs := flag.NewFlagSet("ingester", flag.ContinueOnError)
		cfg.Flags(fs)
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		err := cfg.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to name %q", name, err, c.says)
		}
	}
	if d := ingester.DefaultConfig().Parse; d.Wall != 2*time.Minute || d.PDFEngine != ingester.EnginePDFium || d.OCR != "" {
		t.Errorf("defaults: %+v", d)
	}
}
