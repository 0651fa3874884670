package embedder_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder"
)

func load(args ...string) (embedder.Config, string, error) {
	cfg, out := embedder.DefaultConfig(), &bytes.Buffer{}
	err := service.Load("embedder", args, func(string) string { return "" }, out, &cfg)
	return cfg, out.String(), err
}

func TestConfigReadsProviders(t *testing.T) {
	t.Parallel()
	const list = `[{"models":["bge-m3"],"baseUrl":"http://host/v1","apiKey":"hidden-key","inFlight":2}]`
	file := filepath.Join(t.TempDir(), "providers.json")
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{list, "@" + file} {
		cfg, _, err := load("--embedding-providers", value)
		if err != nil || len(cfg.Providers) != 1 || cfg.Providers[0].APIKey.Reveal() != "hidden-key" || cfg.Providers[0].InFlight != 2 {
			t.Errorf("%s: got %+v, %v", value, cfg.Providers, err)
		}
	}
	_, out, err := load("--embedding-providers", list, "--embedding-api-key", "other-key", "--print-config")
	if !errors.Is(err, service.ErrPrinted) || strings.Contains(out, "-key") && (strings.Contains(out, "hidden-key") || strings.Contains(out, "other-key")) {
		t.Errorf("printed %q, error %v", out, err)
	}
	for _, bad := range []string{"{", `[{"model":"x"}]`, "@/nowhere"} {
		if _, _, err := load("--embedding-providers", bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestConfigValidateNamesFlags(t *testing.T) {
	t.Parallel()
	_, _, err := load("--embedding-dims", "0", "--embedder-workers", "-1", "--embedding-request-timeout", "-1s")
	for _, flag := range []string{"embedding-base-url", "embedding-dims", "embedder-workers", "embedding-request-timeout"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error %v does not name %s", err, flag)
		}
	}
}
