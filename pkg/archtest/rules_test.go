// Package archtest holds tests of the project's shape: which package may import which, and what may stand
// where. It has no code of its own. The tables below are those of docs/architecture.md; a change of them
// is a change of the architecture.
package archtest

const module = "github.com/weir-project/weir/"

// mayImport is, for each room of the house, the other rooms its packages may import. The packages of a room
// may import each other.
var mayImport = map[string][]string{
	"migrations":         {},
	"pkg/messages":       {},
	"pkg/guard":          {"pkg/messages"},
	"pkg/batch":          {"pkg/guard"},
	"pkg/lexical":        {},
	"pkg/postings":       {},
	"pkg/embedding":      {"pkg/guard"},
	"pkg/fusion":         {"pkg/messages"},
	"pkg/pgstore":        {"pkg/messages", "pkg/lexical", "pkg/postings", "pkg/pgstore/filter"},
	"pkg/pgstore/filter": {"pkg/messages"}, // a room of its own: clients build filters without the store
	"pkg/bus":            {"pkg/messages", "pkg/guard"},
	"pkg/client":         {"pkg/messages", "pkg/guard", "pkg/bus", "pkg/pgstore/filter"},
	"pkg/service":        {"pkg/messages"},
	"pkg/testkit":        {"pkg/messages", "migrations", "pkg/bus", "pkg/service"},
	"pkg/archtest":       {},
	"services/ingester":  ofServices,
	"services/embedder":  ofServices,
	"services/indexer":   ofServices,
	"services/retriever": ofServices,
	"cmd/weir": {
		"migrations", "pkg/messages", "pkg/guard", "pkg/lexical", "pkg/fusion", "pkg/pgstore", "pkg/pgstore/filter", "pkg/bus", "pkg/client", "pkg/embedding", "pkg/service",
		"services/ingester", "services/embedder", "services/indexer", "services/retriever",
	},
}

// ofServices leaves out the other services: they share messages, never code.
var ofServices = []string{"pkg/messages", "pkg/guard", "pkg/batch", "pkg/lexical", "pkg/postings", "pkg/fusion", "pkg/pgstore", "pkg/pgstore/filter", "pkg/bus", "pkg/embedding", "pkg/service"}

// doors are the packages of a service that others may import: its root, and what a binary needs to run
// itself again as a parser.
var doors = []string{
	"services/ingester", "services/ingester/parseworker", "services/embedder", "services/indexer", "services/retriever",
}

// testsMayImport is open to the tests of a room besides what it may import, "" to those of every room.
var testsMayImport = map[string][]string{
	"":         {"pkg/testkit"},
	"pkg/bus":  {"pkg/service"},  // has connections like those of services
	"cmd/weir": {"pkg/postings"}, // compares postings, decoded, after a run with kills
}

// onlyStandard are the rooms that import nothing but the standard library.
var onlyStandard = []string{"migrations", "pkg/messages", "pkg/fusion", "pkg/pgstore/filter"}

// reserved are imports, and all below them, that only some rooms or packages may have outside of tests.
var reserved = []struct {
	path, why string
	by        []string
}{
	{"github.com/jackc/pgx", "SQL lives in pkg/pgstore", []string{"pkg/pgstore", "pkg/service", "pkg/testkit", "cmd/weir"}},
	{"github.com/pgvector", "SQL lives in pkg/pgstore", []string{"pkg/pgstore"}},
	{"database/sql", "pgx is used directly; goose wants a *sql.DB", []string{"pkg/service/migrate"}},
	{"github.com/pressly/goose", "migrations are applied in one place", []string{"pkg/service/migrate"}},
	{"github.com/nats-io/nats-server", "only weir up and tests carry a server", []string{"pkg/service/embednats", "pkg/testkit"}},
	{"github.com/ThreeDotsLabs/watermill", "stages see it through pkg/bus", []string{"pkg/bus"}},
	{"golang.org/x/sync/errgroup", "a panic in it ends the process; pkg/guard has one where it does not", []string{"pkg/guard"}},
	{"testing", "test code reaches no binary", []string{"pkg/testkit", "cmd/weir/internal/testweir"}},
	{"C", "services are pure Go", nil},
}

// notInServices must not be linked into a service's binary, however long the way.
var notInServices = []string{
	module + "pkg/testkit", module + "pkg/archtest", module + "pkg/service/embednats", module + "pkg/service/localpg",
	module + "pkg/embedding/fakeserver", "github.com/nats-io/nats-server", "testing",
}

// sqlAllowed are the rooms and packages whose string literals may be SQL outside of tests.
var sqlAllowed = []string{
	"pkg/pgstore",
	"pkg/service/migrate",      // the lock and the version table around migrations
	"pkg/service/localpg",      // creates the database of weir up
	"pkg/testkit",              // a database a test
	"cmd/weir/internal/doctor", // looks at databases of any schema, which the store refuses to open
}

// startsAllowed are files of services that may start goroutines otherwise than in a guard.Group: what runs there is of
// the process, not of a document or request, or guards itself.
var startsAllowed = []string{
	"services/ingester/internal/worker/pool.go",    // waits for the end of a parse worker
	"services/ingester/internal/worker/starter.go", // the same
	"services/ingester/internal/parse/pdf.go",      // ticks, in a parse worker
	"services/indexer/internal/commit/commit.go",   // its transactions are guarded
	"services/indexer/internal/jobs/runner.go",     // its jobs are guarded
	"services/retriever/internal/engine/batch.go",  // its calls of the embedder are guarded
}

// environmentAllowed may read the environment; everything else is told by its caller.
var environmentAllowed = []string{"pkg/service", "pkg/testkit", "cmd/weir", "services/ingester/cmd", "services/embedder/cmd", "services/indexer/cmd", "services/retriever/cmd"}
