package pgstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/weir-project/weir/pkg/lexical"
)

// States of a generation. Work is taken into all but dead ones, which are dropped.
const (
	stateBuilding = "building" // a job fills it
	stateLive     = "live"     // what readers see
	stateRetained = "retained" // was live, and may be again
	stateDead     = "dead"
)

// partition is the name of a generation's chunks table. The id is an integer, so the name is safe.
func partition(generation int64) string { return "chunks_g" + strconv.FormatInt(generation, 10) }

// createGeneration inserts a generation and attaches its partition. The partition is made
// standalone first: attaching takes SHARE UPDATE EXCLUSIVE on chunks, which readers and writers do not
// notice, where PARTITION OF would lock them out.
func createGeneration(ctx context.Context, tx pgx.Tx, kbID int64, state string, g Generation) (int64, error) {
	var dims *int
	if g.Space != nil {
		dims = &g.Space.Dims
	}
	var id int64
	err := tx.QueryRow(ctx, query("generation_create"), kbID, state, g.Space, dims, g.Parser, g.Chunking, g.Analyzer, fingerprintOf(g.Analyzer)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("create generation: %w", err)
	}
	for _, ddl := range partitionDDL(id, dims) {
		if _, err := tx.Exec(ctx, ddl); err != nil {
			return 0, fmt.Errorf("create partition of generation %d: %w", id, err)
		}
	}
	return id, nil
}

// fingerprintOf identifies the output of an analyzer of this program; empty where there is none of that id.
func fingerprintOf(analyzer string) string {
	a, err := lexical.Lookup(analyzer)
	if err != nil {
		return ""
	}
	return a.Fingerprint()
}

// maxInlineDims is how many dimensions leave room for the rest of a row on a page.
const maxInlineDims = 3500

// partitionDDL lists the statements that make and attach a partition. Every name carries the
// generation. Vectors lie inline and text and lexemes, however short, out of line: an exact scan of
// vectors then reads a third fewer pages, and writing costs the same.
func partitionDDL(id int64, dims *int) []string {
	name := partition(id)
	check := "embedding IS NULL"
	if dims != nil {
		check = fmt.Sprintf("embedding IS NULL OR vector_dims(embedding) = %d", *dims)
	}
	storage := "PLAIN"
	if dims != nil && *dims > maxInlineDims {
		storage = "EXTERNAL"
	}
	return []string{
		fmt.Sprintf("CREATE TABLE %s (LIKE chunks INCLUDING DEFAULTS INCLUDING STORAGE)", name),
		fmt.Sprintf("ALTER TABLE %s ALTER COLUMN embedding SET STORAGE %s", name, storage),
		fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s_generation CHECK (generation = %d), ADD CONSTRAINT %s_dims CHECK (%s)", name, name, id, name, check),
		fmt.Sprintf("ALTER TABLE chunks ATTACH PARTITION %s FOR VALUES IN (%d)", name, id),
		fmt.Sprintf("ALTER TABLE %s SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, toast_tuple_target = 128)", name),
	}
}
