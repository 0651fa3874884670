package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
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
		if err := PrintSettings(fs, out); err != nil {
			return err
		}
		return ErrPrinted
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
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if name, value := fromEnv("config", getenv); *file == "" && value != "" {
		if err := fs.Set("config", value); err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
	}
	return Fill(fs, given, getenv, *file, false)
}

// Fill gives the flags that were not given a value from the environment and then from a file (empty:
// none). Load does it for a command line; Fill is for flags that somebody else has parsed. lenient passes
// over lines of the file that are of no flag here, for a file that several programs share.
func Fill(fs *flag.FlagSet, given map[string]bool, getenv func(string) string, file string, lenient bool) error {
	set := maps.Clone(given)
	if set == nil {
		set = map[string]bool{}
	}
	var problems []error
	fs.VisitAll(func(f *flag.Flag) {
		name, value := fromEnv(f.Name, getenv)
		if set[f.Name] || value == "" || f.Name == "print-config" || f.Name == "config" {
			return
		}
		set[f.Name] = true
		if err := fs.Set(f.Name, value); err != nil {
			problems = append(problems, fmt.Errorf("environment variable %s: %w", name, err))
		}
	})
	if len(problems) > 0 || file == "" {
		return errors.Join(problems...)
	}
	return fillFromFile(fs, set, file, lenient)
}

func fillFromFile(fs *flag.FlagSet, set map[string]bool, file string, lenient bool) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	defer f.Close()
	parser := ff.PlainParser
	if strings.EqualFold(filepath.Ext(file), ".json") {
		parser = ff.JSONParser
	}
	err = parser(f, func(name, value string) error {
		switch {
		case set[name]:
			return nil
		case fs.Lookup(name) == nil && lenient:
			return nil
		case fs.Lookup(name) == nil || name == "config" || name == "print-config":
			return fmt.Errorf("%q is not a setting", name)
		}
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("settings file %s: %w", file, err)
	}
	return nil
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

// PrintSettings writes the value of every flag, one "name value" a line, as a settings file has them.
func PrintSettings(fs *flag.FlagSet, out io.Writer) error {
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		if err == nil && f.Name != "print-config" && f.Name != "config" {
			_, err = fmt.Fprintln(out, strings.TrimSpace(f.Name+" "+f.Value.String()))
		}
	})
	if err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	return nil
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
	// DatabaseConns bounds the connections to Postgres; 0: what the service can use, 10 for most.
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
		NATSURL:     "nats://127.0.0.1:4222",
		ConnectWait: time.Minute,
		LogFormat:   "text",
		LogLevel:    "info",
		Grace:       20 * time.Second,
	}
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.Var(&c.DatabaseURL, "database-url", "Postgres to use (also DATABASE_URL)")
	fs.IntVar(&c.DatabaseConns, "database-conns", c.DatabaseConns, "most connections to Postgres; 0: what the service can use, 10 for most")
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
	if c.DatabaseConns < 0 {
		bad("database-conns", "must not be negative")
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
