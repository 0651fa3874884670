package retriever

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
)

// Config is what the retriever can be told. The zero value means the defaults.
type Config struct {
	// Limits is the preset of limits on requests: default (4,096 characters, 1,000 candidates and
	// results) or tablestore (128 and 100). A knowledge base may choose the tighter one for itself.
	Limits string
	// MaxQueryRunes, MaxCandidates and MaxResults are limits in place of the preset's; 0: the preset's.
	// Candidates and results beyond 10,000 are refused: all of a query is in memory.
	MaxQueryRunes, MaxCandidates, MaxResults int
	// Limits on filters, checked before anything of one is evaluated: characters of an expression, levels of
	// nesting, conditions, and values of one in or notIn. 0: 2,048, 16, 256, 256. A knowledge base may tighten them.
	MaxFilterCharacters, MaxFilterDepth, MaxFilterConditions, MaxFilterValues int
	// CursorKey authenticates cursors, at least 16 bytes. Replicas need the same one; without any the
	// process makes one, and cursors end with it.
	CursorKey service.Secret
	// Concurrency is how many requests are answered at once; 0: 32. More are refused as OVERLOADED. Each
	// uses one connection to the database at a time, a batch a few, and Open asks for as many as requests
	// where no number is set.
	Concurrency int
	// DefaultDeadline is the time of a request that names none; 0: 10 s.
	DefaultDeadline time.Duration
	// CacheBytes bounds the posting segments kept in memory; 0: 256 MiB. Ten bytes for each chunk and
	// the postings of common words are what queries read again and again.
	CacheBytes int64
	// CandidateBytes bounds the contents that one request reads of its candidates before they are in order: with
	// MODEL, and of several knowledge bases. 0: 8 MiB. Requests that find more read the page's once more.
	CandidateBytes int64
	// VectorEntries is how many query vectors are kept; 0: 1,024.
	VectorEntries int
	// EmbedWait is how long a query waits for an embedder to come up when none listens; 0: 500 ms.
	EmbedWait time.Duration
	// Rerank is the servers of rerank models, for MODEL; none: MODEL is refused. The indexer must be told the same.
	Rerank service.RerankProviders
	// DrainTimeout is how long requests in hand may take at the end; 0: 10 s.
	DrainTimeout time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Limits: "default", Concurrency: 32, DefaultDeadline: 10 * time.Second, CacheBytes: 256 << 20, CandidateBytes: 8 << 20,
		VectorEntries: 1024, EmbedWait: 500 * time.Millisecond, DrainTimeout: 10 * time.Second,
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	return Config{
		Limits: orDefault(c.Limits, d.Limits), MaxQueryRunes: c.MaxQueryRunes, MaxCandidates: c.MaxCandidates, MaxResults: c.MaxResults,
		MaxFilterCharacters: c.MaxFilterCharacters, MaxFilterDepth: c.MaxFilterDepth, MaxFilterConditions: c.MaxFilterConditions, MaxFilterValues: c.MaxFilterValues,
		CursorKey: c.CursorKey, Concurrency: orDefault(c.Concurrency, d.Concurrency),
		DefaultDeadline: orDefault(c.DefaultDeadline, d.DefaultDeadline), CacheBytes: orDefault(c.CacheBytes, d.CacheBytes),
		CandidateBytes: orDefault(c.CandidateBytes, d.CandidateBytes),
		VectorEntries:  orDefault(c.VectorEntries, d.VectorEntries), EmbedWait: orDefault(c.EmbedWait, d.EmbedWait),
		Rerank: c.Rerank, DrainTimeout: orDefault(c.DrainTimeout, d.DrainTimeout),
	}
}

// conns is how many connections all requests at once and the check of readiness can use.
func (c Config) conns() int { return c.withDefaults().Concurrency + 2 }

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
	fs.IntVar(&c.MaxQueryRunes, "retriever-max-query-runes", c.MaxQueryRunes, "characters of a query text; 0: the preset's")
	fs.IntVar(&c.MaxCandidates, "retriever-max-candidates", c.MaxCandidates, "candidates of a leg; 0: the preset's")
	fs.IntVar(&c.MaxResults, "retriever-max-results", c.MaxResults, "results; 0: the preset's")
	usual := messages.DefaultFilterLimits()
	for _, f := range c.filterLimits() {
		fs.IntVar(f.value, f.flag, *f.value, fmt.Sprintf("%s; 0: %d", f.meaning, *f.of(&usual)))
	}
	fs.Var(&c.CursorKey, "retriever-cursor-key", "key that authenticates cursors, 16 bytes or more; none: one of the process")
	fs.IntVar(&c.Concurrency, "retriever-concurrency", c.Concurrency, "requests answered at once")
	fs.DurationVar(&c.DefaultDeadline, "retriever-deadline", c.DefaultDeadline, "time of a request that names none")
	fs.Int64Var(&c.CacheBytes, "retriever-cache-bytes", c.CacheBytes, "memory for posting segments")
	fs.Int64Var(&c.CandidateBytes, "retriever-candidate-bytes", c.CandidateBytes, "contents of candidates that a request reads before they are in order")
	fs.IntVar(&c.VectorEntries, "retriever-vector-entries", c.VectorEntries, "query vectors kept")
	fs.DurationVar(&c.EmbedWait, "retriever-embed-wait", c.EmbedWait, "wait for an embedder to come up when none listens")
	fs.Var(&c.Rerank, service.RerankProvidersFlag, service.RerankProvidersHelp)
	fs.DurationVar(&c.DrainTimeout, "retriever-drain-timeout", c.DrainTimeout, "time for requests in hand at the end")
}

// Bounds of settings.
const (
	minKey   = 16     // bytes of the cursor key
	maxLimit = 10_000 // candidates and results
)

// filterLimit is a setting of a limit on filters.
type filterLimit struct {
	flag, meaning string
	value         *int
	of            func(*messages.FilterLimits) *int
}

func (c *Config) filterLimits() []filterLimit {
	return []filterLimit{
		{"retriever-max-filter-characters", "characters of a filter expression", &c.MaxFilterCharacters, func(l *messages.FilterLimits) *int { return &l.Characters }},
		{"retriever-max-filter-depth", "levels of nesting of a filter", &c.MaxFilterDepth, func(l *messages.FilterLimits) *int { return &l.Depth }},
		{"retriever-max-filter-conditions", "conditions of a filter", &c.MaxFilterConditions, func(l *messages.FilterLimits) *int { return &l.Conditions }},
		{"retriever-max-filter-values", "values of one in or notIn", &c.MaxFilterValues, func(l *messages.FilterLimits) *int { return &l.Values }},
	}
}

// limits are those of the preset, with what is set over them.
func (c Config) limits() messages.RetrieveLimits {
	l, _ := messages.RetrieveLimitsNamed(c.Limits) // Validate has found it
	l.QueryRunes = orDefault(c.MaxQueryRunes, l.QueryRunes)
	l.Candidates = orDefault(c.MaxCandidates, l.Candidates)
	l.Results = orDefault(c.MaxResults, l.Results)
	for _, f := range c.filterLimits() {
		*f.of(&l.Filter) = orDefault(*f.value, *f.of(&l.Filter))
	}
	return l
}

// Validate reports every wrong field by the name of its flag.
func (c *Config) Validate() error {
	var problems []error
	if _, ok := messages.RetrieveLimitsNamed(c.Limits); !ok {
		problems = append(problems, errors.New("retriever-limits: must be default or tablestore"))
	}
	if n := len(c.CursorKey); n > 0 && n < minKey {
		problems = append(problems, fmt.Errorf("retriever-cursor-key: must have at least %d bytes", minKey))
	}
	if c.MaxCandidates > maxLimit || c.MaxResults > maxLimit {
		problems = append(problems, fmt.Errorf("retriever-max-candidates, retriever-max-results: must be at most %d", maxLimit))
	}
	most := messages.MaxFilterLimits()
	for _, f := range c.filterLimits() {
		if *f.value < 0 || *f.value > *f.of(&most) {
			problems = append(problems, fmt.Errorf("%s: must be 1 to %d, or 0 for the default", f.flag, *f.of(&most)))
		}
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"retriever-max-query-runes", int64(c.MaxQueryRunes)},
		{"retriever-max-candidates", int64(c.MaxCandidates)},
		{"retriever-max-results", int64(c.MaxResults)},
		{"retriever-concurrency", int64(c.Concurrency)},
		{"retriever-deadline", int64(c.DefaultDeadline)},
		{"retriever-cache-bytes", c.CacheBytes},
		{"retriever-candidate-bytes", c.CandidateBytes},
		{"retriever-vector-entries", int64(c.VectorEntries)},
		{"retriever-embed-wait", int64(c.EmbedWait)},
		{"retriever-drain-timeout", int64(c.DrainTimeout)},
	} {
		if n.value < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", n.flag))
		}
	}
	return errors.Join(append(problems, c.Rerank.Validate())...)
}
