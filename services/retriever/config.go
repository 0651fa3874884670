package retriever

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/weir-project/weir/services/retriever/internal/config"
)

// Config is what the retriever can be told. The zero value means the defaults.
type Config struct {
	// Limits is the preset of limits on requests: default (4,096 characters, 1,000 candidates and
	// results) or tablestore (128 and 100).
	Limits string
	// Concurrency is how many requests are answered at once; 0: 32. More are refused as OVERLOADED. It
	// should not exceed the connections to the database by much: requests wait for one.
	Concurrency int
	// DefaultDeadline is the time of a request that names none; 0: 10 s.
	DefaultDeadline time.Duration
	// CacheBytes bounds the posting segments kept in memory; 0: 256 MiB. Ten bytes for each chunk and
	// the postings of common words are what queries read again and again.
	CacheBytes int64
	// VectorEntries is how many query vectors are kept; 0: 1,024.
	VectorEntries int
	// EmbedWait is how long a query waits for an embedder to come up when none listens; 0: 500 ms.
	EmbedWait time.Duration
	// DrainTimeout is how long requests in hand may take at the end; 0: 10 s.
	DrainTimeout time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Limits: "default", Concurrency: 32, DefaultDeadline: 10 * time.Second, CacheBytes: 256 << 20,
		VectorEntries: 1024, EmbedWait: 500 * time.Millisecond, DrainTimeout: 10 * time.Second,
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	return Config{
		Limits: orDefault(c.Limits, d.Limits), Concurrency: orDefault(c.Concurrency, d.Concurrency),
		DefaultDeadline: orDefault(c.DefaultDeadline, d.DefaultDeadline), CacheBytes: orDefault(c.CacheBytes, d.CacheBytes),
		VectorEntries: orDefault(c.VectorEntries, d.VectorEntries), EmbedWait: orDefault(c.EmbedWait, d.EmbedWait),
		DrainTimeout: orDefault(c.DrainTimeout, d.DrainTimeout),
	}
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.StringVar(&c.Limits, "retriever-limits", c.Limits, "limits on requests: default or tablestore")
	fs.IntVar(&c.Concurrency, "retriever-concurrency", c.Concurrency, "requests answered at once")
	fs.DurationVar(&c.DefaultDeadline, "retriever-deadline", c.DefaultDeadline, "time of a request that names none")
	fs.Int64Var(&c.CacheBytes, "retriever-cache-bytes", c.CacheBytes, "memory for posting segments")
	fs.IntVar(&c.VectorEntries, "retriever-vector-entries", c.VectorEntries, "query vectors kept")
	fs.DurationVar(&c.EmbedWait, "retriever-embed-wait", c.EmbedWait, "wait for an embedder to come up when none listens")
	fs.DurationVar(&c.DrainTimeout, "retriever-drain-timeout", c.DrainTimeout, "time for requests in hand at the end")
}

// Validate reports every wrong field by the name of its flag.
func (c *Config) Validate() error {
	var problems []error
	if _, ok := config.Limits(c.Limits); !ok {
		problems = append(problems, errors.New("retriever-limits: must be default or tablestore"))
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"retriever-concurrency", int64(c.Concurrency)},
		{"retriever-deadline", int64(c.DefaultDeadline)},
		{"retriever-cache-bytes", c.CacheBytes},
		{"retriever-vector-entries", int64(c.VectorEntries)},
		{"retriever-embed-wait", int64(c.EmbedWait)},
		{"retriever-drain-timeout", int64(c.DrainTimeout)},
	} {
		if n.value < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", n.flag))
		}
	}
	return errors.Join(problems...)
}
