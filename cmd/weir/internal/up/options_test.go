package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestOptionsThatContradictAreNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"unknown part":      {func(o *Options) { o.Only = "nats,nonsense" }, "nonsense"},
		"part and address":  {func(o *Options) { o.Only, o.Process.NATSURL = "nats", "nats://x" }, "nats is to run here"},
		"replicas":          {func(o *Options) { o.Streams.Replicas = 6 }, "stream-replicas"},
		"stream size":       {func(o *Options) { o.Streams.MaxBytes = 1000 }, "stream-max-bytes"},
		"port out of range": {func(o *Options) { o.PostgresPort = 70000 }, "postgres-port"},
	} {
		o := DefaultOptions()
		tt.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want one that says %q", name, err, tt.want)
		}
	}
	o := DefaultOptions()
	if err := o.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

func TestAnAddressReplacesAPart(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Process.DatabaseURL = "postgres://x/y"
	if o.runs(partPostgres) || !o.runs(partNATS) || !o.runs("embedder") {
		t.Error("want everything but postgres to run")
	}
	o.Only = "embedder"
	if o.runs(partNATS) || !o.runs("embedder") {
		t.Error("want only the embedder to run")
	}
}

func TestAServiceWithoutWhatItNeedsIsRefused(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Only = "embedder"
	err := (&runtime{opts: o, natsURL: "nats://x"}).checkNeeds()
	if err == nil || !strings.Contains(err.Error(), "EMBEDDING_BASE_URL") || strings.Contains(err.Error(), "NATS_URL") {
		t.Errorf("got %v, want that the embedding server is missing and nothing else", err)
	}
}

func TestSomebodyElsesNATSContextIsLeftAlone(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := DefaultOptions()
	o.Getenv = func(k string) string { return map[string]string{"XDG_CONFIG_HOME": base}[k] }
	r := &runtime{opts: o, logger: testkit.Logger(t), keys: statedir.Keys{NATSPort: 4222, NATSPassword: "pw"}}
	path := filepath.Join(base, "nats", "context", "weir.json")
	for range 2 { // ours may be written again
		if err := r.writeContext(); err != nil {
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(body), "nats://127.0.0.1:4222") {
		t.Errorf("context: got %s, %v", body, err)
	}
	theirs := `{"description":"mine","url":"nats://elsewhere"}`
	if err := os.WriteFile(path, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.writeContext(); err == nil {
		t.Error("want an error that says it is left alone")
	}
	if body, err := os.ReadFile(path); err != nil || string(body) != theirs {
		t.Errorf("somebody else's context: got %s, %v, want it unchanged", body, err)
	}
}
