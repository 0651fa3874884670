package pgstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/postings"
)

// Query gives tests the text of a fixed statement.
func Query(name string) string { return query(name) }

// ReuseFrom gives tests the statement that takes known vectors from a generation.
func ReuseFrom(generation int64) string { return reuseFrom(generation) }

// AgePlans has searches on a connection find its plans too old.
func AgePlans(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), plansMade) }

// SQL is a statement with its arguments.
type SQL struct {
	Text string
	Args []any
}

// HybridSQL gives tests the hybrid statement of a plan.
func HybridSQL(plan SearchPlan, ids []int64) (SQL, error) {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	var hits []postings.Hit
	for _, id := range ids {
		hits = append(hits, postings.Hit{ChunkID: id})
	}
	st, err := r.hybridStatement(hits, tieMargin)
	if err != nil {
		return SQL{}, err
	}
	return SQL{st.text.String(), st.args}, nil
}

// HiddenSQL gives tests the statement that lists the chunks nothing may find.
func HiddenSQL(generation int64) SQL {
	st := hiddenStatement(generation)
	return SQL{st.text.String(), st.args}
}

// LookSQL and AllowedSQL give tests the statements that ask which chunks a plan allows: some, or all.
func LookSQL(plan SearchPlan, ids []int64) SQL {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	st := r.lookStatement(ids)
	return SQL{st.text.String(), st.args}
}

// AllowedSQL see LookSQL.
func AllowedSQL(plan SearchPlan) SQL {
	r := &searchRun{plan: plan, restricted: plan.Subspaces != nil || plan.Where != nil}
	st := r.allowedStatement()
	return SQL{st.text.String(), st.args}
}

// ContentSQL and CutSQL give tests the statements over chunk ids.
func ContentSQL(generation int64, ids []int64) SQL {
	st := contentStatement(generation, ids, false, Reading{})
	return SQL{st.text.String(), st.args}
}

// CutSQL see ContentSQL.
func CutSQL(generation int64, ids []int64, limit int) SQL {
	st := cutStatement(generation, ids, limit)
	return SQL{st.text.String(), st.args}
}

// ListSQL gives tests the statement of a listing.
func ListSQL(plan ListPlan, subspace *string) SQL {
	st := plan.statement(subspace, plan.rows()+1)
	return SQL{st.text.String(), st.args}
}
