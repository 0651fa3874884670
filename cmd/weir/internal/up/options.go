package up

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// Options say what to run. DefaultOptions gives the defaults.
type Options struct {
	// Process holds the settings every process has. An empty NATSURL or DatabaseURL means that NATS or
	// Postgres is run here.
	Process service.Config
	// EmbeddingURL replaces the local embedding server; EmbeddingKey is sent to it, and EmbeddingModel
	// is tried at the start.
	EmbeddingURL   service.SecretURL
	EmbeddingKey   service.Secret
	EmbeddingModel string
	// Only names the parts to run, separated by commas; empty: all that no URL replaces.
	Only string
	// SetupFile is the record of scripts/setup; empty: setup.json of the state directory.
	SetupFile string
	// Ports on 127.0.0.1; 0: that of the last run or the default if free, else any free one.
	NATSPort, PostgresPort, EmbeddingPort int
	// SettingsFile is read for the services too; Getenv is os.Getenv but in tests.
	SettingsFile string
	Getenv       func(string) string
	// Dir is the state directory.
	Dir statedir.Dir
	// Streams are what the streams shall be like.
	Streams StreamOptions
	// NoContext leaves the context files of the nats tool alone.
	NoContext bool
}

// DefaultOptions returns the defaults: everything, here.
func DefaultOptions() Options {
	process := service.DefaultConfig()
	process.NATSURL = ""
	return Options{Process: process, EmbeddingModel: "multilingual-e5-small"}
}

// Flags binds the fields.
func (o *Options) Flags(fs *flag.FlagSet) {
	o.Process.Flags(fs)
	fs.Var(&o.EmbeddingURL, "embedding-base-url", "OpenAI-compatible embedding server instead of the local one (also EMBEDDING_BASE_URL)")
	fs.Var(&o.EmbeddingKey, "embedding-api-key", "key for the embedding server (also EMBEDDING_API_KEY)")
	fs.StringVar(&o.EmbeddingModel, "embedding-model", o.EmbeddingModel, "model that is tried at the start; empty: none")
	fs.StringVar(&o.Only, "only", o.Only, "parts to run, separated by commas: "+strings.Join(partNames(), ", "))
	fs.StringVar(&o.SetupFile, "setup", o.SetupFile, "record of scripts/setup (default: setup.json in the state directory)")
	fs.IntVar(&o.NATSPort, "nats-port", o.NATSPort, "port of the embedded NATS server")
	fs.IntVar(&o.PostgresPort, "postgres-port", o.PostgresPort, "port of the private Postgres")
	fs.IntVar(&o.EmbeddingPort, "embedding-port", o.EmbeddingPort, "port of the local embedding server")
	o.Streams.Flags(fs)
	fs.BoolVar(&o.NoContext, "no-context", o.NoContext, "do not write a context for the nats tool")
}

// Validate reports everything that is wrong.
func (o *Options) Validate() error {
	var problems []error
	process := o.Process
	if process.NATSURL == "" {
		process.NATSURL = "run here"
	}
	problems = append(problems, process.Validate(), o.Streams.Validate())
	for name, port := range map[string]int{"nats-port": o.NATSPort, "postgres-port": o.PostgresPort, "embedding-port": o.EmbeddingPort} {
		if port < 0 || port > 65535 {
			problems = append(problems, fmt.Errorf("%s: must be 0 to 65535", name))
		}
	}
	for _, name := range o.only() {
		if !slices.Contains(partNames(), name) {
			problems = append(problems, fmt.Errorf("only: there is no part %q, only %s", name, strings.Join(partNames(), ", ")))
		}
		if url, replaced := o.replacements()[name]; replaced && url != "" {
			problems = append(problems, fmt.Errorf("only: %s is to run here, and an address replaces it; take one of them away", name))
		}
	}
	return errors.Join(problems...)
}

func (o *Options) only() []string {
	return strings.FieldsFunc(o.Only, func(r rune) bool { return r == ',' || r == ' ' })
}

// replacements maps the parts that an address may replace to it.
func (o *Options) replacements() map[string]string {
	return map[string]string{
		partNATS:      o.Process.NATSURL.Reveal(),
		partPostgres:  o.Process.DatabaseURL.Reveal(),
		partEmbedding: o.EmbeddingURL.Reveal(),
	}
}

// runs tells whether the part is to run here.
func (o *Options) runs(name string) bool {
	if only := o.only(); len(only) > 0 {
		return slices.Contains(only, name)
	}
	return o.replacements()[name] == ""
}

func (o *Options) setupFile() string {
	if o.SetupFile != "" {
		return o.SetupFile
	}
	return o.Dir.Path("setup.json")
}
