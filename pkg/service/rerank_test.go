package service

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const rerankList = `[{"name":"local","url":"http://127.0.0.1:8080/v1/rerank","models":["bge","jina"],"apiKey":"k3y","timeout":"1500ms","batchDocuments":32},
	{"name":"tei","url":"https://host/rerank","api":"tei"}]`

func TestRerankProvidersAreReadAndShownWithoutTheirKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rerank.json")
	if err := os.WriteFile(file, []byte(rerankList), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{rerankList, "@" + file} {
		var p RerankProviders
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.Var(&p, RerankProvidersFlag, RerankProvidersHelp)
		if err := fs.Parse([]string{"--" + RerankProvidersFlag, value}); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(p) != 2 || time.Duration(p[0].Timeout) != 1500*time.Millisecond || p[0].APIKey.Reveal() != "k3y" || p[1].API != RerankAPITEI {
			t.Errorf("got %+v", p)
		}
		if n := p.Names(); len(n) != 2 || n[0].Name != "local" || n[0].Models[1] != "jina" || n[1].Models != nil {
			t.Errorf("names: got %+v", n)
		}
		if text := p.String(); strings.Contains(text, "k3y") || !strings.Contains(text, `"timeout":"1.5s"`) {
			t.Errorf("shown as %s", text)
		}
	}
}

func TestRerankProvidersRefused(t *testing.T) {
	for value, want := range map[string]string{
		`{}`: "rerank providers", `[{"nam":"x"}]`: "nam", `@/nowhere/at/all`: "read rerank providers", `[{"name":"x","timeout":"soon"}]`: "soon",
	} {
		if err := new(RerankProviders).Set(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
	for value, want := range map[string]string{
		`[{"url":"http://h/"}]`:                                               "[0].name",
		`[{"name":"a","url":"ftp://h/"}]`:                                     "[0].url",
		`[{"name":"a","url":"http://u:secret@h/"}]`:                           "[0].url",
		`[{"name":"a","url":"http://h/","api":"grpc"}]`:                       "[0].api",
		`[{"name":"a","url":"http://h/","apiKey":"x","apiKeyFile":"y"}]`:      "[0].apiKeyFile",
		`[{"name":"a","url":"http://h/","inFlight":-1}]`:                      "[0].inFlight",
		`[{"name":"a","url":"http://h/","timeout":"-1s"}]`:                    "[0].timeout",
		`[{"name":"a","url":"http://h/"},{"name":"a","url":"http://h/"}]`:     "[1].name",
		`[{"name":"a","url":"http://h/","maxDocuments":-5}]`:                  "[0].maxDocuments",
		`[{"name":"a","url":"http://h/","maxDocumentBytes":-5,"timeout":""}]`: "",
	} {
		var p RerankProviders
		err := p.Set(value)
		if want == "" {
			if err == nil {
				t.Errorf("%s passes", value)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err = p.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

func TestRerankKeyFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("k3y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := (RerankProvider{APIKeyFile: file}).Key(); err != nil || key.Reveal() != "k3y" {
		t.Errorf("got %q, %v", key.Reveal(), err)
	}
	if _, err := (RerankProvider{Name: "local", APIKeyFile: file + ".none"}).Key(); err == nil || !strings.Contains(err.Error(), "local") {
		t.Errorf("a missing file: got %v", err)
	}
}
