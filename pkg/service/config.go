package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/peterbourgon/ff/v3"
)

// EnvPrefix begins the name of every environment variable of a setting: --log-level is WEIR_LOG_LEVEL.
const EnvPrefix = "WEIR"

// Settings is a plain struct of settings that can be read from flags, environment and file.
type Settings interface {
	// Flags binds each field to a flag whose default is the field's present value.
	Flags(fs *flag.FlagSet)
	// Validate reports everything that is wrong, at once, by the names of the flags.
	Validate() error
}

// ErrPrinted is returned by Load when it did what --help or --print-config asked: the program is to
// end with success.
var ErrPrinted = errors.New("printed what was asked for")

// usualNames are the environment variables people know, beside the prefixed ones, which win.
var usualNames = [...]struct{ flag, env string }{
	{"database-url", "DATABASE_URL"},
	{"nats-url", "NATS_URL"},
	{"embedding-base-url", "EMBEDDING_BASE_URL"},
	{"embedding-api-key", "EMBEDDING_API_KEY"},
}

// Load fills the settings of program. The order of precedence is flag, environment (WEIR_ and the flag's
// name in upper case, then the usual names such as DATABASE_URL), the file of --config, default. The
// file holds one setting a line, "name value" (or a JSON object when it ends in .json). getenv is
// os.Getenv but in tests. Help and the effective settings go to out.
func Load(program string, args []string, getenv func(string) string, out io.Writer, all ...Settings) error {
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(out)
	file := fs.String("config", "", "file of settings, one `name value` a line, or JSON when it ends in .json")
	show := fs.Bool("print-config", false, "print the settings in effect, secrets redacted, and exit")
	for _, s := range all {
		s.Flags(fs)
	}
	if err := parse(fs, args, getenv, file); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return ErrPrinted
		}
		return fmt.Errorf("read settings: %w", err)
	}
	if *show {
		return printSettings(fs, out)
	}
	return validate(all)
}

// parse applies the layers from the strongest to the weakest; what is set stays.
func parse(fs *flag.FlagSet, args []string, getenv func(string) string, file *string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	set := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })
	var problems []error
	fs.VisitAll(func(f *flag.Flag) {
		if set[f.Name] || f.Name == "print-config" {
			return
		}
		if name, value := fromEnv(f.Name, getenv); value != "" {
			if err := fs.Set(f.Name, value); err != nil {
				problems = append(problems, fmt.Errorf("environment variable %s: %w", name, err))
			}
		}
	})
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if *file == "" {
		return nil
	}
	parser := ff.PlainParser
	if strings.EqualFold(filepath.Ext(*file), ".json") {
		parser = ff.JSONParser
	}
	// The flags given above count as set already, so the file only fills the rest.
	return ff.Parse(fs, nil, ff.WithConfigFile(*file), ff.WithConfigFileParser(parser))
}

func fromEnv(flagName string, getenv func(string) string) (name, value string) {
	name = EnvPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
	if value = getenv(name); value != "" {
		return name, value
	}
	for _, u := range usualNames {
		if u.flag == flagName {
			return u.env, getenv(u.env)
		}
	}
	return name, ""
}

func printSettings(fs *flag.FlagSet, out io.Writer) error {
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		if err == nil && f.Name != "print-config" && f.Name != "config" {
			_, err = fmt.Fprintln(out, strings.TrimSpace(f.Name+" "+f.Value.String()))
		}
	})
	if err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	return ErrPrinted
}

func validate(all []Settings) error {
	var problems []error
	for _, s := range all {
		if err := s.Validate(); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("settings: %w", errors.Join(problems...))
	}
	return nil
}

// Config is what every process of Weir can be told. DefaultConfig gives the defaults; the zero value
// is not valid.
type Config struct {
	// DatabaseURL is a Postgres URL or keyword string; several hosts are tried in turn. Empty: the
	// process has no database.
	DatabaseURL SecretURL
	// DatabaseConns bounds the connections to Postgres.
	DatabaseConns int
	// NATSURL is one or more NATS addresses, separated by commas.
	NATSURL SecretURL
	// NATSCreds is a credentials file, empty for none.
	NATSCreds string
	// ConnectWait is how long the start waits for Postgres and NATS before giving up.
	ConnectWait time.Duration
	// HTTPAddr is where /healthz, /readyz and /metrics are served; empty: nowhere.
	HTTPAddr string
	// LogFormat is text or json; LogLevel debug, info, warn or error.
	LogFormat, LogLevel string
	// Grace is how long work in hand may take after the stop signal.
	Grace time.Duration
}

// DefaultConfig returns the defaults of every process.
func DefaultConfig() Config {
	return Config{
		DatabaseConns: 10,
		NATSURL:       "nats://127.0.0.1:4222",
		ConnectWait:   time.Minute,
		LogFormat:     "text",
		LogLevel:      "info",
		Grace:         20 * time.Second,
	}
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.Var(&c.DatabaseURL, "database-url", "Postgres to use (also DATABASE_URL)")
	fs.IntVar(&c.DatabaseConns, "database-conns", c.DatabaseConns, "most connections to Postgres")
	fs.Var(&c.NATSURL, "nats-url", "NATS servers, separated by commas (also NATS_URL)")
	fs.StringVar(&c.NATSCreds, "nats-creds", c.NATSCreds, "NATS credentials file")
	fs.DurationVar(&c.ConnectWait, "connect-wait", c.ConnectWait, "how long to wait for Postgres and NATS at the start")
	fs.StringVar(&c.HTTPAddr, "http-addr", c.HTTPAddr, "address of /healthz, /readyz and /metrics, such as 127.0.0.1:8080")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
	fs.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	fs.DurationVar(&c.Grace, "grace", c.Grace, "time for work in hand after the stop signal")
}

// Validate reports every wrong field.
func (c *Config) Validate() error {
	var problems []error
	bad := func(field, why string) { problems = append(problems, fmt.Errorf("%s: %s", field, why)) }
	if c.DatabaseConns < 1 {
		bad("database-conns", "must be at least 1")
	}
	if c.NATSURL == "" {
		bad("nats-url", "must not be empty")
	}
	if c.ConnectWait <= 0 {
		bad("connect-wait", "must be positive")
	}
	if c.Grace <= 0 {
		bad("grace", "must be positive")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		bad("log-format", fmt.Sprintf("must be text or json, not %q", c.LogFormat))
	}
	if _, err := level(c.LogLevel); err != nil {
		bad("log-level", err.Error())
	}
	return errors.Join(problems...)
}
