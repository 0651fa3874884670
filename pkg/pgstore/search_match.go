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

// topMatching is the scorer's Top of the chunks that match. It asks the database about the best first and
// about more only when too few of them match, so nothing is cut before it was looked at.
func (r *searchRun) topMatching(ctx context.Context, scorer *postings.Scorer) ([]postings.Hit, error) {
	limit := r.plan.Text.Limit
	matches := map[int64]struct{}{}
	asked := map[int64]struct{}{}
	for n := max(4*limit, 256); ; n *= 8 {
		hits, err := scorer.Top(ctx, n, r.allowed())
		if err != nil {
			return nil, err
		}
		if err := r.askMatching(ctx, hits, asked, matches); err != nil {
			return nil, err
		}
		out := slices.DeleteFunc(slices.Clone(hits), func(h postings.Hit) bool { _, ok := matches[h.ChunkID]; return !ok })
		if len(out) < limit && len(hits) >= n {
			continue
		}
		if len(out) > limit { // what ties with the last place stays, as in Top
			last := out[limit-1].Score
			out = slices.DeleteFunc(out, func(h postings.Hit) bool { return h.Score < last })
		}
		return out, nil
	}
}

// askMatching asks about those hits that were not asked about yet.
func (r *searchRun) askMatching(ctx context.Context, hits []postings.Hit, asked, matches map[int64]struct{}) error {
	var ids []int64
	for _, h := range hits {
		if _, known := asked[h.ChunkID]; !known {
			asked[h.ChunkID] = struct{}{}
			ids = append(ids, h.ChunkID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	st := matchStatement(r.plan.KB.Generation.ID, ids, r.plan.Match)
	b := r.snap.batch()
	b.Queue(st.text.String(), st.args...).Query(func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			matches[id] = struct{}{}
			return nil
		})
		return err
	})
	return r.snap.run(ctx, b)
}

func matchStatement(generation int64, ids []int64, match string) *statement {
	s := &statement{}
	s.add("SELECT c.chunk_id FROM unnest(", s.arg(ids), "::bigint[]) u(id) CROSS JOIN LATERAL (SELECT * FROM ", partition(generation),
		" x WHERE x.generation = ", s.arg(generation), " AND x.chunk_id = u.id OFFSET 0) c WHERE c.lex @@ ", s.arg(match), "::text::tsquery")
	return s
}
