package embedder

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/service"
)

// Config is what the embedder can be told. The zero value means the defaults, which need a BaseURL.
type Config struct {
	// BaseURL is the OpenAI-compatible server of every model that Providers does not list, up to and
	// including the version: http://127.0.0.1:8080/v1. Empty: only the listed models are served.
	BaseURL string
	// APIKey is sent to it; empty: none.
	APIKey service.Secret
	// Model and Dims are probed at the start: the embedder serves nothing before the server answers
	// for them, and ends when the dimension differs. Empty Model: no probe.
	Model string
	Dims  int
	// RequestsPerMinute and TokensPerMinute are the plan's limits; 0: none.
	RequestsPerMinute, TokensPerMinute int
	// InFlight is the most requests to the server at once; 0: 8. Less helps when a small server
	// refuses parallel requests.
	InFlight int
	// BatchItems, BatchTokens and BatchBytes bound one request; 0: 64, 32,768 and 1 MiB. The server's
	// own limits are learnt, so there is rarely a reason to set them.
	BatchItems, BatchTokens, BatchBytes int
	// RequestTimeout of one request; 0: 60 s.
	RequestTimeout time.Duration
	// Providers are further servers, by model.
	Providers Providers

	// Workers is how many messages are embedded at once; 0: 32. Those that come close together share requests.
	Workers int
	// Queries is how many query requests are answered at once; 0: 64. More are refused as OVERLOADED.
	Queries int
	// CacheEntries is how many query vectors are kept; 0: 4,096.
	CacheEntries int
	// DrainTimeout is how long work in hand may take at the end; 0: 15 s.
	DrainTimeout time.Duration
}

// Provider is a server for some models.
type Provider struct {
	Models            []string       `json:"models"`
	BaseURL           string         `json:"baseUrl"`
	APIKey            service.Secret `json:"apiKey"`
	RequestsPerMinute int            `json:"requestsPerMinute"`
	TokensPerMinute   int            `json:"tokensPerMinute"`
	InFlight          int            `json:"inFlight"`
	BatchItems        int            `json:"batchItems"`
	BatchTokens       int            `json:"batchTokens"`
	BatchBytes        int            `json:"batchBytes"`
}

// DefaultConfig returns the defaults of a process; only BaseURL is missing.
func DefaultConfig() Config {
	space := embedding.DefaultSpace()
	return Config{
		Model: space.Model, Dims: space.Dims, InFlight: 8, RequestTimeout: time.Minute,
		Workers: 32, Queries: 64, CacheEntries: 4096, DrainTimeout: 15 * time.Second,
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	if c.Workers == 0 {
		c.Workers = d.Workers
	}
	if c.Queries == 0 {
		c.Queries = d.Queries
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = d.DrainTimeout
	}
	return c
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.StringVar(&c.BaseURL, "embedding-base-url", c.BaseURL, "OpenAI-compatible embedding server, such as http://127.0.0.1:8080/v1 (also EMBEDDING_BASE_URL)")
	fs.Var(&c.APIKey, "embedding-api-key", "key for the embedding server (also EMBEDDING_API_KEY)")
	fs.StringVar(&c.Model, "embedding-model", c.Model, "model to probe at the start; empty: none")
	fs.IntVar(&c.Dims, "embedding-dims", c.Dims, "dimensions the probed model must have")
	fs.IntVar(&c.RequestsPerMinute, "embedding-requests-per-minute", c.RequestsPerMinute, "rate limit of the embedding server; 0: none")
	fs.IntVar(&c.TokensPerMinute, "embedding-tokens-per-minute", c.TokensPerMinute, "token limit of the embedding server; 0: none")
	fs.IntVar(&c.InFlight, "embedding-in-flight", c.InFlight, "most requests to the embedding server at once")
	fs.IntVar(&c.BatchItems, "embedding-batch-items", c.BatchItems, "most texts in a request; 0: 64")
	fs.IntVar(&c.BatchTokens, "embedding-batch-tokens", c.BatchTokens, "most tokens in a request, estimated; 0: 32768")
	fs.IntVar(&c.BatchBytes, "embedding-batch-bytes", c.BatchBytes, "most bytes of text in a request; 0: 1048576")
	fs.DurationVar(&c.RequestTimeout, "embedding-request-timeout", c.RequestTimeout, "time for one request to the embedding server")
	fs.Var(&c.Providers, "embedding-providers", "further servers by model, as JSON or @file: [{\"models\":[\"bge-m3\"],\"baseUrl\":\"http://host/v1\",\"apiKey\":\"\"}]")
	fs.IntVar(&c.Workers, "embedder-workers", c.Workers, "messages embedded at once")
	fs.IntVar(&c.Queries, "embedder-queries", c.Queries, "query requests answered at once")
	fs.IntVar(&c.CacheEntries, "embedder-cache-entries", c.CacheEntries, "query vectors kept")
	fs.DurationVar(&c.DrainTimeout, "embedder-drain-timeout", c.DrainTimeout, "time for work in hand at the end")
}

// Validate reports every wrong field by the name of its flag.
func (c *Config) Validate() error {
	var problems []error
	bad := func(flag, why string) { problems = append(problems, fmt.Errorf("%s: %s", flag, why)) }
	if c.BaseURL == "" && len(c.Providers) == 0 {
		bad("embedding-base-url", "must be given")
	}
	if c.Model != "" && (c.Dims < 1 || c.Dims > embedding.MaxDims) {
		bad("embedding-dims", fmt.Sprintf("must be 1 to %d", embedding.MaxDims))
	}
	for flag, n := range map[string]int{
		"embedding-requests-per-minute": c.RequestsPerMinute, "embedding-tokens-per-minute": c.TokensPerMinute,
		"embedding-in-flight": c.InFlight, "embedding-batch-items": c.BatchItems,
		"embedding-batch-tokens": c.BatchTokens, "embedding-batch-bytes": c.BatchBytes,
		"embedder-workers": c.Workers, "embedder-queries": c.Queries, "embedder-cache-entries": c.CacheEntries,
	} {
		if n < 0 {
			bad(flag, "must not be negative")
		}
	}
	if c.RequestTimeout < 0 {
		bad("embedding-request-timeout", "must not be negative")
	}
	for i, p := range c.Providers {
		if len(p.Models) == 0 {
			bad("embedding-providers", fmt.Sprintf("[%d].models: must not be empty", i))
		}
	}
	return errors.Join(problems...)
}

// servers lists the provider of every other model, if any, and then the further ones.
func (c Config) servers() []Provider {
	var all []Provider
	if c.BaseURL != "" {
		all = append(all, Provider{
			BaseURL: c.BaseURL, APIKey: c.APIKey, RequestsPerMinute: c.RequestsPerMinute,
			TokensPerMinute: c.TokensPerMinute, InFlight: c.InFlight, BatchItems: c.BatchItems,
			BatchTokens: c.BatchTokens, BatchBytes: c.BatchBytes,
		})
	}
	return append(all, c.Providers...)
}

// Providers is a list of servers. It is a flag.Value: JSON, or @ and the name of a file with it.
type Providers []Provider

// String shows the list without its keys.
func (p *Providers) String() string {
	if p == nil {
		return ""
	}
	return service.ShowJSON(*p)
}

// Set reads the list.
func (p *Providers) Set(text string) error {
	list, err := service.ReadJSON[Provider]("embedding providers", text)
	if err == nil {
		*p = list
	}
	return err
}
