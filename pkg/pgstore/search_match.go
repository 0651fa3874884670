package pgstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// Clause is a condition on the lexemes of a chunk: that it holds them at the distances given, in order.
type Clause struct {
	Steps   []Step // 1 or more
	Exclude bool   // must not be so
}

// Step is a lexeme of a clause.
type Step struct {
	Lexeme string
	After  int  // positions behind the step before, 1 or more; of no meaning in the first
	Prefix bool // any lexeme that begins so
}

// Condition returns the condition that all clauses hold, for SearchPlan; of none it is empty. Lexemes are compared
// as they are, byte by byte. Positions are those of the stored tsvector: beyond the 255th of a lexeme and
// beyond the 16,383rd word a chunk has none.
func Condition(clauses []Clause) string {
	parts := make([]string, len(clauses))
	for i, c := range clauses {
		var b strings.Builder
		if c.Exclude {
			b.WriteByte('!')
		}
		b.WriteByte('(')
		for j, s := range c.Steps {
			if j > 0 {
				b.WriteString(" <" + strconv.Itoa(s.After) + "> ")
			}
			b.WriteString(quoteLexeme(s.Lexeme))
			if s.Prefix {
				b.WriteString(":*")
			}
		}
		b.WriteByte(')')
		parts[i] = b.String()
	}
	return strings.Join(parts, " & ")
}

// quoteLexeme writes a lexeme as tsquery's input reads it.
func quoteLexeme(lexeme string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(lexeme) + "'"
}

// Prefix stands for the stored lexemes that begin with it.
type Prefix struct {
	Lexeme string
	Weight float64 // of each of them
}

// maxExpansion is how many lexemes a prefix stands for at most: those that most chunks hold.
const maxExpansion = 64

// expand adds to the terms what the prefixes stand for. No index knows lexemes by their beginning, so this
// reads the lexemes of all chunks.
func (r *searchRun) expand(ctx context.Context, b *pgx.Batch) error {
	text := *r.plan.Text
	text.Terms = slices.Clone(text.Terms)
	for _, p := range text.Prefixes {
		st := expandStatement(r.plan.KB.Generation.ID, p.Lexeme)
		b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
			lexemes, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if len(lexemes) > maxExpansion {
				lexemes, r.res.PrefixesCut = lexemes[:maxExpansion], true
			}
			for _, l := range lexemes {
				text.Terms = append(text.Terms, postings.Term{Hash: postings.TermHash(l), Weight: p.Weight})
			}
			return err
		})
	}
	err := r.snap.run(ctx, b)
	r.plan.Text = &text
	return err
}

func expandStatement(generation int64, prefix string) *statement {
	s := &statement{}
	s.add("SELECT l.lexeme FROM ", partition(generation), " c CROSS JOIN LATERAL unnest(tsvector_to_array(c.lex)) l(lexeme) WHERE c.lex @@ ",
		s.arg(quoteLexeme(prefix)+":*"), "::text::tsquery AND starts_with(l.lexeme, ", s.arg(prefix),
		`) GROUP BY l.lexeme ORDER BY count(*) DESC, l.lexeme COLLATE "C" LIMIT `, s.arg(maxExpansion+1))
	return s
}

// Candidates of the full-text leg that are checked one by one before all chunks are. Of 100,000 chunks, 256 take
// 2 ms, 2,048 take 20 ms, and all that are allowed 140 to 270 ms (two busy cores).
const (
	minLook = 256
	maxLook = 4096 // about as many probes as a scan of 50,000 chunks takes time
	wider   = 8    // the second look is so much longer
)

// firstLook is how many chunks are asked for a condition one by one at first.
func firstLook(limit int) int { return max(minLook, min(4*limit, maxLook), limit+limit/4) }

// topChecked is the scorer's Top of the chunks that the plan's restrictions and condition allow. It asks the
// database about the best first, then about more of them, and only when still too few are allowed for all
// that are. So nothing is cut before it was looked at, and most queries read a few hundred rows.
func (r *searchRun) topChecked(ctx context.Context, scorer *postings.Scorer) ([]postings.Hit, error) {
	limit := r.plan.Text.Limit
	allowed := map[int64]struct{}{} // of those looked at
	looked := 0
	for n := firstLook(limit); n <= max(maxLook, firstLook(limit)); n *= wider {
		hits, err := r.top(ctx, scorer, n, r.visibleByID())
		if err != nil {
			return nil, err
		}
		if len(hits) > 2*n { // many share a score
			break
		}
		if err := r.look(ctx, hits[looked:], allowed); err != nil { // those before come first again
			return nil, err
		}
		looked = len(hits)
		out := slices.DeleteFunc(hits, func(h postings.Hit) bool { _, ok := allowed[h.ChunkID]; return !ok })
		if looked < n || len(out) >= limit { // there are no others, or none better
			return withTies(out, limit), nil
		}
	}
	var all map[int64]struct{}
	b := r.snap.batch()
	st := r.allowedStatement()
	b.Queue(st.text.String(), st.args...).Query(collectIDs(&all))
	if err := r.snap.run(ctx, b); err != nil {
		return nil, err
	}
	visible := r.visibleByID()
	return r.top(ctx, scorer, limit, func(id int64) bool {
		_, ok := all[id]
		return ok && (visible == nil || visible(id))
	})
}

// top is the scorer's Top, its time counted.
func (r *searchRun) top(ctx context.Context, scorer *postings.Scorer, n int, allowed func(int64) bool) ([]postings.Hit, error) {
	began := time.Now()
	defer func() { r.res.Score += time.Since(began) }()
	return scorer.Top(ctx, n, allowed)
}

// look asks which of the hits are allowed.
func (r *searchRun) look(ctx context.Context, hits []postings.Hit, allowed map[int64]struct{}) error {
	if len(hits) == 0 {
		return nil
	}
	ids := make([]int64, len(hits))
	for i, h := range hits {
		ids[i] = h.ChunkID
	}
	var found map[int64]struct{}
	b := r.snap.batch()
	st := r.lookStatement(ids)
	b.Queue(st.text.String(), st.args...).Query(collectIDs(&found))
	err := r.snap.run(ctx, b)
	maps.Copy(allowed, found)
	return err
}

// withTies cuts a list after limit, but not between equal scores.
func withTies(hits []postings.Hit, limit int) []postings.Hit {
	if len(hits) <= limit {
		return hits
	}
	last := hits[limit-1].Score
	return slices.DeleteFunc(hits, func(h postings.Hit) bool { return h.Score < last })
}

// lookStatement asks of chunks, by their ids, which are allowed.
func (r *searchRun) lookStatement(ids []int64) *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id")
	gen := r.plan.KB.Generation.ID
	if r.restricted {
		s.fromIDs(gen, ids)
		s.add(" WHERE ", r.visible(s))
		s.addMatch(" AND ", r.plan.Match)
		return s
	}
	s.add(" FROM unnest(", s.arg(ids), "::bigint[]) u(id) CROSS JOIN LATERAL (SELECT * FROM ", partition(gen),
		" x WHERE x.generation = ", s.arg(gen), " AND x.chunk_id = u.id OFFSET 0) c")
	s.addMatch(" WHERE ", r.plan.Match)
	return s
}

// allowedStatement lists all chunks of the generation that are allowed.
func (r *searchRun) allowedStatement() *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id FROM ", partition(r.plan.KB.Generation.ID), " c")
	if r.restricted {
		s.add(joinDocuments, " WHERE ", r.visible(s))
		s.addMatch(" AND ", r.plan.Match)
		return s
	}
	s.addMatch(" WHERE ", r.plan.Match)
	return s
}

// addMatch adds the condition on lexemes, if there is one, behind a word.
func (s *statement) addMatch(word, match string) {
	if match != "" {
		s.add(word, "c.lex @@ ", s.arg(match), "::text::tsquery")
	}
}
