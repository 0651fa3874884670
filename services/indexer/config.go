package indexer

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/service"
)

// Config is what the indexer can be told. The zero value means the defaults.
type Config struct {
	// Workers is how many index messages are handled at once; 0: 512. They mostly wait for their group's
	// transaction, so there are more of them than processors.
	Workers int
	// Requests is how many requests are answered at once; 0: 16.
	Requests int
	// GroupDocs and GroupChunks bound the versions that share a transaction, GroupWait the time from
	// the first of a group; 0: 256, 2,000 and 20 ms.
	GroupDocs, GroupChunks int
	GroupWait              time.Duration
	// GroupSpacing bounds the time between two transactions of a knowledge base under load; 0: 1 s. One
	// of few documents is followed sooner: ten milliseconds a document.
	GroupSpacing time.Duration
	// ReconcileEvery is the time between looks at open versions; 0: 1 min. Grace is how long a
	// version must have stood still, with no message left, to be taken for lost; 0: 1 min.
	ReconcileEvery, Grace time.Duration
	// HousekeepingEvery is the time between rounds of purging and sweeping; 0: 5 min.
	HousekeepingEvery time.Duration
	// QueryGrace is how long the data of a deleted knowledge base outlives it, longer than any query
	// runs; 0: 2 min.
	QueryGrace time.Duration
	// Model and Dims are the embedding space of knowledge bases that name none; empty: the built-in model.
	Model string
	Dims  int
	// Rerank is the rerank models that knowledge bases may name in their defaults: those of the retriever.
	Rerank service.RerankProviders
	// JobLease is how long a job waits for an indexer that died while it ran it; 0: 15 s. JobWindow is how many
	// documents of a job are on their way at once; 0: 6. More is faster and slows queries and submits down.
	JobLease  time.Duration
	JobWindow int
	// DrainTimeout is how long work in hand may take at the end; 0: 15 s.
	DrainTimeout time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	space := embedding.DefaultSpace()
	return Config{
		Workers: 512, Requests: 16, GroupDocs: 256, GroupChunks: 2000, GroupWait: 20 * time.Millisecond, GroupSpacing: time.Second,
		ReconcileEvery: time.Minute, Grace: time.Minute, HousekeepingEvery: 5 * time.Minute, QueryGrace: 2 * time.Minute,
		Model: space.Model, Dims: space.Dims, JobLease: 15 * time.Second, JobWindow: 6, DrainTimeout: 15 * time.Second,
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	for _, f := range []struct{ field, value *int }{
		{&c.Workers, &d.Workers},
		{&c.Requests, &d.Requests},
		{&c.GroupDocs, &d.GroupDocs},
		{&c.GroupChunks, &d.GroupChunks},
		{&c.JobWindow, &d.JobWindow},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	for _, f := range []struct{ field, value *time.Duration }{
		{&c.GroupWait, &d.GroupWait},
		{&c.GroupSpacing, &d.GroupSpacing},
		{&c.ReconcileEvery, &d.ReconcileEvery},
		{&c.Grace, &d.Grace},
		{&c.HousekeepingEvery, &d.HousekeepingEvery},
		{&c.QueryGrace, &d.QueryGrace},
		{&c.JobLease, &d.JobLease},
		{&c.DrainTimeout, &d.DrainTimeout},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	if c.Model == "" {
		c.Model, c.Dims = d.Model, d.Dims
	}
	return c
}

// Flags binds the fields.
func (c *Config) Flags(fs *flag.FlagSet) {
	fs.IntVar(&c.Workers, "indexer-workers", c.Workers, "index messages handled at once")
	fs.IntVar(&c.Requests, "indexer-requests", c.Requests, "requests answered at once")
	fs.IntVar(&c.GroupDocs, "indexer-group-docs", c.GroupDocs, "most documents in one transaction")
	fs.IntVar(&c.GroupChunks, "indexer-group-chunks", c.GroupChunks, "most chunks in one transaction, about")
	fs.DurationVar(&c.GroupWait, "indexer-group-wait", c.GroupWait, "how long a finished document waits for others")
	fs.DurationVar(&c.GroupSpacing, "indexer-group-spacing", c.GroupSpacing, "most time between two transactions of a knowledge base under load")
	fs.DurationVar(&c.ReconcileEvery, "reconcile-every", c.ReconcileEvery, "time between looks at unfinished documents")
	fs.DurationVar(&c.Grace, "reconcile-grace", c.Grace, "how long a document must have stood still to be taken for lost")
	fs.DurationVar(&c.HousekeepingEvery, "housekeeping-every", c.HousekeepingEvery, "time between rounds of purging and sweeping")
	fs.DurationVar(&c.QueryGrace, "query-grace", c.QueryGrace, "how long the data of a deleted knowledge base outlives it")
	fs.StringVar(&c.Model, "default-model", c.Model, "embedding model of knowledge bases that name none")
	fs.IntVar(&c.Dims, "default-dims", c.Dims, "its dimensions")
	fs.Var(&c.Rerank, service.RerankProvidersFlag, service.RerankProvidersHelp)
	fs.DurationVar(&c.JobLease, "job-lease", c.JobLease, "how long a job waits for an indexer that died")
	fs.IntVar(&c.JobWindow, "job-window", c.JobWindow, "documents of a job on their way at once")
	fs.DurationVar(&c.DrainTimeout, "indexer-drain-timeout", c.DrainTimeout, "time for work in hand at the end")
}

// Validate reports every wrong field by the name of its flag.
func (c *Config) Validate() error {
	var problems []error
	for flag, n := range map[string]int{
		"indexer-workers": c.Workers, "indexer-requests": c.Requests, "indexer-group-docs": c.GroupDocs,
		"indexer-group-chunks": c.GroupChunks, "default-dims": c.Dims, "job-window": c.JobWindow,
	} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", flag))
		}
	}
	for flag, d := range map[string]time.Duration{
		"indexer-group-wait": c.GroupWait, "indexer-group-spacing": c.GroupSpacing, "reconcile-every": c.ReconcileEvery, "reconcile-grace": c.Grace,
		"housekeeping-every": c.HousekeepingEvery, "query-grace": c.QueryGrace, "indexer-drain-timeout": c.DrainTimeout, "job-lease": c.JobLease,
	} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("%s: must not be negative", flag))
		}
	}
	if c.Model != "" && c.Dims > embedding.MaxDims {
		problems = append(problems, fmt.Errorf("default-dims: must be at most %d", embedding.MaxDims))
	}
	return errors.Join(append(problems, c.Rerank.Validate())...)
}
