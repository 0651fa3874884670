package pgstore

import (
	"context"
	"slices"
	"strconv"
	"strings"

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

// topMatching is the scorer's Top of the chunks that match. It asks the database about the best first, and
// only when too few of them match for all that do, so nothing is cut before it was looked at.
func (r *searchRun) topMatching(ctx context.Context, scorer *postings.Scorer) ([]postings.Hit, error) {
	limit := r.plan.Text.Limit
	n := firstLook(limit)
	hits, err := scorer.Top(ctx, n, r.allowed())
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(hits))
	for i, h := range hits {
		ids[i] = h.ChunkID
	}
	matches, err := r.matching(ctx, matchStatement(r.plan.KB.Generation.ID, ids, r.plan.Match))
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(hits, func(h postings.Hit) bool { _, ok := matches[h.ChunkID]; return !ok })
	if len(out) < limit && len(ids) >= n {
		return r.topOfAll(ctx, scorer)
	}
	if len(out) > limit { // what ties with the last place stays, as in Top
		last := out[limit-1].Score
		out = slices.DeleteFunc(out, func(h postings.Hit) bool { return h.Score < last })
	}
	return out, nil
}

// firstLook is how many chunks are asked for a condition one by one before all are.
func firstLook(limit int) int { return max(4*limit, 256) }

// topOfAll looks for the chunks that match among all of the generation.
func (r *searchRun) topOfAll(ctx context.Context, scorer *postings.Scorer) ([]postings.Hit, error) {
	st := &statement{}
	st.add("SELECT c.chunk_id FROM ", partition(r.plan.KB.Generation.ID), " c WHERE c.lex @@ ", st.arg(r.plan.Match), "::text::tsquery")
	matches, err := r.matching(ctx, st)
	if err != nil {
		return nil, err
	}
	allowed := r.allowed()
	return scorer.Top(ctx, r.plan.Text.Limit, func(id int64) bool {
		_, ok := matches[id]
		return ok && (allowed == nil || allowed(id))
	})
}

// matching is the set of chunk ids that a statement lists.
func (r *searchRun) matching(ctx context.Context, st *statement) (map[int64]struct{}, error) {
	out := map[int64]struct{}{}
	b := r.snap.batch()
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			out[id] = struct{}{}
			return nil
		})
		return err
	})
	return out, r.snap.run(ctx, b)
}

func matchStatement(generation int64, ids []int64, match string) *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id FROM unnest(", s.arg(ids), "::bigint[]) u(id) CROSS JOIN LATERAL (SELECT * FROM ", partition(generation),
		" x WHERE x.generation = ", s.arg(generation), " AND x.chunk_id = u.id OFFSET 0) c WHERE c.lex @@ ", s.arg(match), "::text::tsquery")
	return s
}
