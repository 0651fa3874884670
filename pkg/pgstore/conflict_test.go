package pgstore_test

import (
	"testing"

	"github.com/weir-project/weir/pkg/pgstore"
)

func TestARowWithoutItsPartitionIsTriedAgainAndAWrongOneIsNot(t *testing.T) {
	e := newEnv(t)
	_, none := e.pool.Exec(t.Context(), `INSERT INTO chunks (generation, chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len, heading_path, context, content, hash, lex)
		VALUES (999999, 1, 1, 1, 0, 0, 0, 0, 0, '{}', '', '', '', '')`)
	if none == nil || !pgstore.Conflict(none) {
		t.Errorf("no partition: got %v, want a conflict", none)
	}
	_, wrong := e.pool.Exec(t.Context(), `INSERT INTO chunks (generation, chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len, heading_path, context, content, hash, lex, embedding)
		VALUES ($1, 1, 1, 1, 0, 0, 0, 0, 0, '{}', '', '', '', '', '[1,0]')`, e.kb.Generation.ID)
	if wrong == nil || pgstore.Conflict(wrong) {
		t.Errorf("a vector of other dimensions: got %v, want an error that is no conflict", wrong)
	}
}
