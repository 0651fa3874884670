package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/migrations"
	"github.com/weir-project/weir/pkg/service/migrate"
)

// What Weir needs at least.
const (
	minPostgres = 150000 // server_version_num
	minVector   = "0.8.0"
)

// examples is how many things of a kind are named.
const examples = 5

// The questions. They only read, and every column is text.
const (
	serverVersion = `SELECT current_setting('server_version'), current_setting('server_version_num'), current_database()`
	vectorVersion = `SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), ''),
		coalesce((SELECT default_version FROM pg_available_extensions WHERE name = 'vector'), '')`
	liveSpaces = `SELECT string_agg(k.tenant || '/' || k.name, ', ' ORDER BY k.tenant, k.name), g.space::text
		FROM generations g JOIN knowledge_bases k ON k.id = g.kb_id AND k.deleted_at IS NULL
		WHERE g.state = 'live' AND g.space IS NOT NULL GROUP BY g.space::text ORDER BY 1 LIMIT 100`
	stuckDocuments = `SELECT k.name, d.doc_id, d.status, date_trunc('second', now() - d.updated_at)::text, count(*) OVER ()::text
		FROM documents d JOIN knowledge_bases k ON k.id = d.kb_id AND k.deleted_at IS NULL
		WHERE d.status IN ('Pending', 'Indexing') AND d.updated_at < now() - make_interval(secs => $1)
		ORDER BY d.updated_at LIMIT 5`
	openDeadLetters = `SELECT tenant, stage, coalesce(error->>'code', '?'), count(*)::text, max(id)::text
		FROM dead_letters WHERE state = 'open' GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 2, 3 LIMIT 20`
	generationsWithoutPartition = `SELECT k.tenant || '/' || k.name, g.id::text
		FROM generations g JOIN knowledge_bases k ON k.id = g.kb_id AND k.deleted_at IS NULL
		LEFT JOIN pg_inherits i ON i.inhparent = 'chunks'::regclass AND i.inhrelid = to_regclass('chunks_g' || g.id)
		WHERE g.state IN ('live', 'building') AND (i.inhrelid IS NULL OR i.inhdetachpending)
		ORDER BY 1 LIMIT 20`
	attachedPartitions = `SELECT count(*)::text FROM pg_inherits WHERE inhparent = 'chunks'::regclass`
	presentIndexes     = `SELECT c.relname, (i.indisvalid AND i.indisready)::text
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
		WHERE t.relnamespace = current_schema()::regnamespace ORDER BY 1`
)

var errNoRows = errors.New("no rows")

// rowsOf returns the rows of a question whose columns are text.
func rowsOf(ctx context.Context, pool *pgxpool.Pool, question string, args ...any) ([][]string, error) {
	rows, err := pool.Query(ctx, question, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out [][]string
	for rows.Next() {
		row := make([]string, len(rows.FieldDescriptions()))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// rowOf returns the only row of a question.
func rowOf(ctx context.Context, pool *pgxpool.Pool, question string) ([]string, error) {
	rows, err := rowsOf(ctx, pool, question)
	if err == nil && len(rows) == 0 {
		err = errNoRows
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

func database(ctx context.Context, p *patient) []Finding {
	pool, err := p.Database(ctx)
	if err != nil {
		return fail(err.Error(), "start one with `weir up --detach`, or set DATABASE_URL to one that runs")
	}
	p.pool = pool
	v, err := rowOf(ctx, pool, serverVersion)
	if err != nil {
		p.pool = nil
		pool.Close()
		return broken("ask for the version of Postgres", err)
	}
	says := fmt.Sprintf("Postgres %s, database %s", v[0], v[2])
	if number(v[1]) < minPostgres {
		return fail(says+": too old", "use Postgres 15 or newer")
	}
	return ok(says)
}

// number reads digits; anything else is 0.
func number(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func extension(ctx context.Context, p *patient) []Finding {
	v, err := rowOf(ctx, p.pool, vectorVersion)
	switch {
	case err != nil:
		return broken("ask for the version of pgvector", err)
	case v[0] == "" && v[1] == "":
		return fail("pgvector is not installed on this server", "install the package of pgvector 0.8 or newer, or use a server that has it")
	case v[0] == "":
		return fail("the extension vector is missing in this database", "psql \"$DATABASE_URL\" -c 'CREATE EXTENSION vector', then weir migrate")
	case older(v[0], minVector):
		fix := "psql \"$DATABASE_URL\" -c 'ALTER EXTENSION vector UPDATE'"
		if older(v[1], minVector) {
			fix = "install pgvector " + minVector + " or newer, then " + fix
		}
		return fail(fmt.Sprintf("pgvector %s is too old, %s is needed", v[0], minVector), fix)
	}
	return ok("pgvector " + v[0])
}

// older compares versions of numbers and dots.
func older(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		if x, y := number(left[i]), number(right[i]); x != y {
			return x < y
		}
	}
	return len(left) < len(right)
}

func schema(ctx context.Context, p *patient) []Finding {
	url, err := p.DatabaseURL()
	if err != nil {
		return broken("find the database", err)
	}
	err = migrate.Check(ctx, url, migrations.FS())
	switch {
	case errors.Is(err, migrate.ErrOlder):
		return fail(strings.TrimSuffix(err.Error(), "; run `weir migrate`"), "weir migrate")
	case errors.Is(err, migrate.ErrNewer):
		return fail(err.Error(), "update this program, or the services would refuse to start")
	case err != nil:
		return broken("read the schema's version", err)
	}
	p.schema = true
	return ok("up to date")
}

func stuck(ctx context.Context, p *patient) []Finding {
	rows, err := rowsOf(ctx, p.pool, stuckDocuments, p.StuckAfter.Seconds())
	if err != nil {
		return broken("look for stuck documents", err)
	}
	if len(rows) == 0 {
		return ok(fmt.Sprintf("no document has stood still for %s", p.StuckAfter))
	}
	var named []string
	for _, r := range rows {
		named = append(named, fmt.Sprintf("%s in %s (%s for %s)", r[1], r[0], r[2], r[3]))
	}
	return warn(fmt.Sprintf("%s documents have made no progress for more than %s: %s", rows[0][4], p.StuckAfter, strings.Join(named, ", ")),
		fmt.Sprintf("the indexer sends lost work again every minute: see that services and embedding are well here; `weir docs get --kb %s %s` tells more",
			rows[0][0], quoted(rows[0][1])))
}

// quoted is a text as a shell takes it.
func quoted(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_./-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func deadLetters(ctx context.Context, p *patient) []Finding {
	rows, err := rowsOf(ctx, p.pool, openDeadLetters)
	if err != nil {
		return broken("look for dead letters", err)
	}
	if len(rows) == 0 {
		return ok("none open")
	}
	var kinds []string
	total := 0
	for i, r := range rows {
		total += number(r[3])
		if i < examples {
			kinds = append(kinds, fmt.Sprintf("%s of stage %s with %s", r[3], r[1], r[2]))
		}
	}
	return warn(fmt.Sprintf("%d open: %s", total, strings.Join(kinds, ", ")),
		fmt.Sprintf("weir dlq list --tenant %s, then weir dlq get, replay or discard, for instance weir dlq get %s", rows[0][0], rows[0][4]))
}

func partitions(ctx context.Context, p *patient) []Finding {
	rows, err := rowsOf(ctx, p.pool, generationsWithoutPartition)
	if err != nil {
		return broken("look at partitions", err)
	}
	if len(rows) == 0 {
		n, err := rowOf(ctx, p.pool, attachedPartitions)
		if err != nil {
			return broken("count partitions", err)
		}
		return ok(n[0] + " attached, none missing")
	}
	var out []Finding
	for _, r := range rows {
		_, kb, _ := strings.Cut(r[0], "/")
		out = append(out, fail(fmt.Sprintf("knowledge base %s has lost the chunks of generation %s: its partition chunks_g%s is not attached", r[0], r[1], r[1]),
			fmt.Sprintf("restore the database from a backup, or weir kb delete %s --yes and publish its documents again", kb))...)
	}
	return out
}

var createIndex = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX (\w+) ON [^;]+`)

// wanted maps the names of the indexes that the migrations make to their statements.
func wanted(files fs.FS) (map[string]string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	out := map[string]string{}
	for _, name := range names {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration %s: %w", name, err)
		}
		up, _, _ := strings.Cut(string(body), "-- +goose Down")
		for _, m := range createIndex.FindAllStringSubmatch(up, -1) {
			out[m[1]] = strings.Join(strings.Fields(m[0]), " ")
		}
		for _, m := range regexp.MustCompile(`(?m)^DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?(\w+)`).FindAllStringSubmatch(up, -1) {
			delete(out, m[1])
		}
	}
	return out, nil
}

func indexes(ctx context.Context, p *patient) []Finding {
	want, err := wanted(migrations.FS())
	if err != nil {
		return broken("read the migrations", err)
	}
	rows, err := rowsOf(ctx, p.pool, presentIndexes)
	if err != nil {
		return broken("look at indexes", err)
	}
	var out []Finding
	for _, r := range rows {
		delete(want, r[0])
		if r[1] != "true" {
			out = append(out, warn(fmt.Sprintf("index %s is not valid: it is not used", r[0]), fmt.Sprintf("psql \"$DATABASE_URL\" -c 'REINDEX INDEX CONCURRENTLY %s'", r[0]))...)
		}
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, fail(fmt.Sprintf("index %s is missing", name), fmt.Sprintf("psql \"$DATABASE_URL\" -c %s", quoted(want[name])))...)
	}
	if len(out) > 0 {
		return out
	}
	return ok(fmt.Sprintf("%d, all there and valid", len(rows)))
}
