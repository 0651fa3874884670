// Package doctor looks at everything Weir depends on and says of each part whether it is well, what is wrong
// with it, and the command that repairs it. It changes nothing.
//
// A check is one line in the table of checks and one function. What a check needs and an earlier one found
// missing (the bus, the database) makes it skipped, not failed: the first cause is told once.
package doctor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/service"
)

// Level is how well something is.
type Level string

// The levels, from good to bad. Skip says that a check could not be made.
const (
	OK   Level = "ok"
	Skip Level = "skip"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Says  string `json:"says"`
	Fix   string `json:"fix,omitempty"` // the command, or what to do
}

// Deps say where things are. A nil function or an empty address means unknown.
type Deps struct {
	// Connect opens the bus. Database opens Postgres; the doctor closes it.
	Connect  func(context.Context) (*nats.Conn, error)
	Database func(context.Context) (*pgxpool.Pool, error)
	// DatabaseURL is the same database for reading the schema's version.
	DatabaseURL func() (string, error)
	// Embedding is the embedding server; its URL is empty when unknown.
	Embedding Embedding
	// Rerank is the servers of rerank models that the retriever is set up with; none when unknown.
	Rerank func() (service.RerankProviders, error)
	Tenant string
	// StuckAfter is how long a document may stand still.
	StuckAfter time.Duration
	// Patience bounds each check.
	Patience time.Duration
}

// Embedding is how the embedding server is reached.
type Embedding struct {
	BaseURL    service.SecretURL
	Key, Model string
}

// Names lists the checks in the order they are made.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Run makes every check.
func Run(ctx context.Context, d Deps) []Finding {
	p := &patient{Deps: d}
	defer p.close()
	var out []Finding
	for _, c := range checks() {
		ctx, cancel := context.WithTimeout(ctx, d.Patience)
		for _, f := range c.look(ctx, p) {
			f.Check = c.name
			out = append(out, f)
		}
		cancel()
	}
	return out
}

// patient is what checks hand on to later ones.
type patient struct {
	Deps
	nc     *nats.Conn          // nil: the bus cannot be reached
	js     jetstream.JetStream // nil: or has none
	pool   *pgxpool.Pool       // nil: nor the database
	schema bool                // the schema is the one this program knows
}

func (p *patient) close() {
	if p.pool != nil {
		p.pool.Close()
	}
}

type check struct {
	name string
	look func(context.Context, *patient) []Finding
}

func checks() []check {
	return []check{
		{"bus", bus},
		{"streams", onBus(streams)},
		{"services", onBus(services)},
		{"database", database},
		{"extension", onDatabase(extension)},
		{"schema", onDatabase(schema)},
		{"embedding", embeddingServer},
		{"embedding of knowledge bases", onSchema(spaces)},
		{"rerank models", rerankProviders},
		{"stuck documents", onSchema(stuck)},
		{"dead letters", onSchema(deadLetters)},
		{"partitions", onSchema(partitions)},
		{"indexes", onSchema(indexes)},
		{"analyzers", onSchema(analyzers)},
		{"generations", onSchema(generations)},
		{"jobs", onSchema(jobs)},
	}
}

type look = func(context.Context, *patient) []Finding

func onBus(l look) look {
	return func(ctx context.Context, p *patient) []Finding {
		if p.nc == nil {
			return []Finding{{Level: Skip, Says: "needs the bus"}}
		}
		return l(ctx, p)
	}
}

func onDatabase(l look) look {
	return func(ctx context.Context, p *patient) []Finding {
		if p.pool == nil {
			return []Finding{{Level: Skip, Says: "needs the database"}}
		}
		return l(ctx, p)
	}
}

func onSchema(l look) look {
	return onDatabase(func(ctx context.Context, p *patient) []Finding {
		if !p.schema {
			return []Finding{{Level: Skip, Says: "needs the present schema"}}
		}
		return l(ctx, p)
	})
}

func ok(says string) []Finding        { return []Finding{{Level: OK, Says: says}} }
func fail(says, fix string) []Finding { return []Finding{{Level: Fail, Says: says, Fix: fix}} }
func warn(says, fix string) []Finding { return []Finding{{Level: Warn, Says: says, Fix: fix}} }
func broken(what string, err error) []Finding {
	return fail(what+": "+err.Error(), "look at the error; `weir status` tells what runs on this machine")
}
