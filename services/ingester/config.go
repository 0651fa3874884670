package ingester

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// Config is what the ingester can be told. The zero value means the defaults.
type Config struct {
	// IntakeWorkers is how many submits are taken in at once; 0: 64. ParseWorkers is how many documents
	// are parsed at once; 0: 4.
	IntakeWorkers, ParseWorkers int
	// Requests is how many submit and delete requests are answered at once; 0: 32.
	Requests int
	// MaxDocumentBytes is the largest document accepted; 0: 100 MB.
	MaxDocumentBytes int64
	// ParseMemoryBytes bounds the memory of documents being parsed, together; 0: 512 MB. A document that
	// needs more is parsed alone.
	ParseMemoryBytes int64
	// DrainTimeout is how long work in hand may take at the end; 0: 15 s.
	DrainTimeout time.Duration
	// Parse says how documents are read.
	Parse ParseConfig
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		IntakeWorkers: 64, ParseWorkers: 4, Requests: 32, MaxDocumentBytes: 100_000_000, ParseMemoryBytes: 512_000_000,
		DrainTimeout: 15 * time.Second, Parse: defaultParseConfig(),
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	for _, f := range []struct {
		field *int
		value int
	}{{&c.IntakeWorkers, d.IntakeWorkers}, {&c.ParseWorkers, d.ParseWorkers}, {&c.Requests, d.Requests}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if c.MaxDocumentBytes == 0 {
		c.MaxDocumentBytes = d.MaxDocumentBytes
	}
	if c.ParseMemoryBytes == 0 {
		c.ParseMemoryBytes = d.ParseMemoryBytes
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = d.DrainTimeout
	}
	c.Parse = c.Parse.withDefaults()
	return c
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.IntVar(&c.IntakeWorkers, "intake-workers", c.IntakeWorkers, "submits taken in at once")
	fs.IntVar(&c.ParseWorkers, "parse-workers", c.ParseWorkers, "documents parsed at once")
	fs.IntVar(&c.Requests, "ingester-requests", c.Requests, "submit and delete requests answered at once")
	fs.Int64Var(&c.MaxDocumentBytes, "max-document-bytes", c.MaxDocumentBytes, "largest document accepted, in bytes")
	fs.Int64Var(&c.ParseMemoryBytes, "parse-memory-bytes", c.ParseMemoryBytes, "memory for documents being parsed, together, in bytes")
	fs.DurationVar(&c.DrainTimeout, "ingester-drain-timeout", c.DrainTimeout, "time for work in hand at the end")
	c.Parse.flags(fs)
}

// Validate reports every wrong field by the name of its flag.
func (c *Config) Validate() error {
	var problems []error
	for flag, n := range map[string]int64{
		"intake-workers": int64(c.IntakeWorkers), "parse-workers": int64(c.ParseWorkers), "ingester-requests": int64(c.Requests),
		"max-document-bytes": c.MaxDocumentBytes, "parse-memory-bytes": c.ParseMemoryBytes, "ingester-drain-timeout": int64(c.DrainTimeout),
	} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", flag))
		}
	}
	return errors.Join(append(problems, c.Parse.validate())...)
}
