package pgstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/weir-project/weir/pkg/postings"
)

// Predicate restricts a search. It returns a boolean SQL expression over d (documents) and c (chunks)
// that is never null; arg binds a value and returns its placeholder. Values reach the database through
// arg only.
type Predicate func(arg func(value any) string) string

// tieMargin is how many rows beyond the limit are read to see whether the last place is shared.
const tieMargin = 8

// statement is SQL text with its arguments.
type statement struct {
	text strings.Builder
	args []any
}

func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

func (s *statement) add(parts ...string) {
	for _, p := range parts {
		s.text.WriteString(p)
	}
}

// metric is how a space compares vectors.
type metric struct {
	operator   string
	similarity func(distance float64) float64 // larger is nearer
}

// metrics by the name a space gives.
func metrics(name string) (metric, bool) {
	switch name {
	case "cosine":
		return metric{"<=>", func(d float64) float64 { return 1 - d }}, true
	case "l2":
		return metric{"<->", func(d float64) float64 { return -(d * d) }}, true
	case "ip":
		return metric{"<#>", func(d float64) float64 { return -d }}, true
	}
	return metric{}, false
}

// visible is the condition of a chunk to be found at all. chunks holds live versions only, so the scan
// needs no join for that; every row that leaves a statement is checked against its document once more.
func (r *searchRun) visible(s *statement) string {
	cond := "c.active"
	if r.plan.Subspaces != nil {
		cond += " AND d.kb_id = " + s.arg(r.plan.KB.ID) + " AND d.subspace = ANY(" + s.arg(r.plan.Subspaces) + "::text[])"
	}
	if r.plan.Where != nil {
		cond += " AND (" + r.plan.Where(s.arg) + ")"
	}
	return cond
}

// fromIDs reads the chunks of a list of ids, each by a probe of the primary key.
func (s *statement) fromIDs(generation int64, ids []int64) { s.fromList(generation, ids, "u(id)") }

// fromList is fromIDs with a name of its own for the list.
func (s *statement) fromList(generation int64, ids []int64, as string) {
	s.add(" FROM unnest(", s.arg(ids), "::bigint[]) ", as, " CROSS JOIN LATERAL (SELECT * FROM ", partition(generation),
		" x WHERE x.generation = ", s.arg(generation), " AND x.chunk_id = u.id OFFSET 0) c", joinByKey)
}

// joinDocuments is for scans. joinByKey is for the few rows of a result: OFFSET 0 keeps it a probe of the
// primary key for each, whatever the statistics say.
const (
	joinDocuments = " JOIN documents d ON d.key = c.document_key AND d.live_version = c.version"
	joinByKey     = " CROSS JOIN LATERAL (SELECT * FROM documents x WHERE x.key = c.document_key AND x.live_version = c.version OFFSET 0) d"
)

// hiddenStatement lists the chunks that may not be found.
func hiddenStatement(generation int64) *statement {
	s := &statement{}
	s.add("SELECT chunk_id FROM ", partition(generation), " WHERE NOT active")
	return s
}

// hybridStatement gives, in one statement, the dense leg (listed: true) and identity and similarity of
// the full-text candidates (listed: false). Without one of the legs its half is left out.
func (r *searchRun) hybridStatement(hits []postings.Hit, extra int) (*statement, error) {
	s := &statement{}
	name := partition(r.plan.KB.Generation.ID)
	distance := "NULL::float8"
	if r.plan.Dense != nil {
		space := r.plan.KB.Generation.Space
		if space == nil {
			return nil, fmt.Errorf("generation %d has no vectors", r.plan.KB.Generation.ID)
		}
		m, ok := metrics(space.Metric)
		if !ok {
			return nil, fmt.Errorf("generation %d has metric %q", r.plan.KB.Generation.ID, space.Metric)
		}
		vector := s.arg(pgvector.NewHalfVector(r.plan.Dense.Vector))
		// No cast to halfvec(d): it takes a third of the time, and only an index of that expression needs it.
		distance = "c.embedding " + m.operator + " " + vector
	}
	visible := r.visible(s)
	if r.plan.Dense != nil {
		r.addDense(s, name, distance, visible, r.plan.Dense.Limit+extra)
	}
	if len(hits) > 0 {
		if r.plan.Dense != nil {
			s.add(" UNION ALL ")
		}
		ids := make([]int64, len(hits))
		for i := range hits {
			ids[i] = hits[i].ChunkID
		}
		s.add("SELECT c.chunk_id, ", distance, ", c.ordinal, d.subspace, d.doc_id, false, true")
		s.fromIDs(r.plan.KB.Generation.ID, ids)
		s.add(" WHERE ", visible)
	}
	return s, nil
}

func (r *searchRun) addDense(s *statement, name, distance, visible string, limit int) {
	join := ""
	if r.restricted {
		join = joinDocuments
	}
	matches := "true"
	switch m := r.plan.Match; {
	case m == "":
	case r.scanMatching:
		visible += " AND c.lex @@ " + s.arg(m) + "::text::tsquery"
	default: // asked of the few rows that are near, not of all
		matches = "(SELECT x.lex FROM " + name + " x WHERE x.generation = " + s.arg(r.plan.KB.Generation.ID) +
			" AND x.chunk_id = c.chunk_id) @@ " + s.arg(m) + "::text::tsquery"
	}
	s.add("SELECT c.chunk_id, c.distance, c.ordinal, d.subspace, d.doc_id, true, ", matches, " FROM (SELECT c.chunk_id, ", distance,
		" AS distance, c.document_key, c.version, c.ordinal FROM ", name, " c", join,
		" WHERE ", visible, " ORDER BY 2 LIMIT ", s.arg(limit), ") c", joinByKey)
}

// hybrid runs the statement after whatever the batch holds already.
func (r *searchRun) hybrid(ctx context.Context, b *pgx.Batch, hits []postings.Hit, extra int) (near, listed []row, err error) {
	if r.plan.Dense == nil && len(hits) == 0 {
		return nil, nil, nil
	}
	st, err := r.hybridStatement(hits, extra)
	if err != nil {
		return nil, nil, err
	}
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		near, listed, err = r.collect(rows)
		return err
	})
	if err := r.snap.run(ctx, b); err != nil {
		return nil, nil, err
	}
	return near, listed, nil
}

// collect sorts the rows of the hybrid statement into the dense list, by distance, and the others.
func (r *searchRun) collect(rows pgx.Rows) (near, listed []row, err error) {
	var similarity func(float64) float64
	if r.plan.Dense != nil {
		m, _ := metrics(r.plan.KB.Generation.Space.Metric)
		similarity = m.similarity
	}
	var c row
	var distance *float64
	var dense bool
	_, err = pgx.ForEachRow(rows, []any{&c.ChunkID, &distance, &c.Ordinal, &c.Subspace, &c.DocID, &dense, &c.matches}, func() error {
		c.HasSimilarity = distance != nil && !math.IsNaN(*distance) // a zero vector has no direction
		c.Similarity, c.distance = 0, math.Inf(1)
		if c.HasSimilarity {
			c.Similarity, c.distance = similarity(*distance), *distance
		}
		switch {
		case !dense:
			listed = append(listed, c)
		case c.HasSimilarity:
			near = append(near, c)
		}
		return nil
	})
	return near, listed, err
}

// cutStatement picks, of chunks with one score, the first by identity.
func cutStatement(generation int64, ids []int64, limit int) *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id")
	s.fromIDs(generation, ids)
	s.add(" ORDER BY d.subspace, d.doc_id, c.ordinal LIMIT ", s.arg(limit))
	return s
}

func contentStatement(generation int64, ids []int64, vectors bool, reading Reading) *statement {
	s := &statement{}
	beyond, content, metadata, list := "false", "c.content", "d.live_metadata", "u(id)"
	if reading.NoContent {
		content = "''::text"
	}
	bounded := reading.Bytes > 0 && len(ids) > UnboundedChunks
	if bounded {
		// A row counts what stands before it. Neither octet_length nor pg_column_size reads what is stored apart.
		size := "octet_length(" + content + ") + octet_length(d.live_metadata::text)"
		if vectors { // of two bytes a number, which four stand for
			size += " + coalesce(2 * pg_column_size(c.embedding), 0)"
		}
		beyond = "sum(" + size + ") OVER (ORDER BY u.ord ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) > " +
			s.arg(int64(reading.Bytes)) + "::bigint"
		list = "WITH ORDINALITY u(id, ord)"
	}
	hash := "NULL::bytea"
	if reading.Hashes {
		hash = "sha256(convert_to(c.content, 'UTF8'))"
	}
	columns := []string{"c.chunk_id", content, "c.heading_path", "c.page_from", "c.page_to", "c.origin", "d.live_title", "d.live_oss_key", metadata, "coalesce(" + beyond + ", false)", hash}
	if vectors {
		columns = append(columns, "c.embedding")
	}
	if !bounded {
		s.add("SELECT ", strings.Join(columns, ", "))
		s.fromList(generation, ids, list)
		return s
	}
	names := []string{"chunk_id", "content", "heading_path", "page_from", "page_to", "origin", "title", "oss_key", "metadata", "beyond", "hash", "embedding"}
	outer := slices.Clone(names[:len(columns)])
	outer[1] = "CASE WHEN beyond THEN left(content, " + s.arg(reading.Prefix) + ") ELSE content END"
	outer[8] = "CASE WHEN NOT beyond THEN metadata END"
	if vectors {
		outer[11] = "CASE WHEN NOT beyond THEN embedding END"
	}
	for i := range columns {
		columns[i] += " AS " + names[i]
	}
	s.add("SELECT ", strings.Join(outer, ", "), " FROM (SELECT ", strings.Join(columns, ", "))
	s.fromList(generation, ids, list)
	s.add(") x")
	return s
}
