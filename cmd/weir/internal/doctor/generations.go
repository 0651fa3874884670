package doctor

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/pkg/lexical"
)

// The questions about what knowledge bases are served from.
const (
	servedAnalyzers = `SELECT k.tenant, k.name, g.analyzer, g.fingerprint
		FROM generations g JOIN knowledge_bases k ON k.id = g.kb_id AND k.deleted_at IS NULL
		WHERE g.state = 'live' ORDER BY 1, 2 LIMIT 10000`
	// Live documents that the live generation has no chunks of. Failed ones were given up knowingly.
	documentsWithoutChunks = `SELECT k.tenant, k.name, count(*)::text
		FROM knowledge_bases k
		JOIN generations g ON g.kb_id = k.id AND g.state = 'live'
		JOIN documents d ON d.kb_id = k.id AND d.live_version IS NOT NULL AND d.status <> 'Failed'
		WHERE k.deleted_at IS NULL
		  AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.generation = g.id AND c.document_key = d.key AND c.version = d.live_version)
		GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 20`
	partitionsWithoutIndex = `SELECT k.tenant, k.name, g.id::text, p.indexrelid::regclass::text
		FROM generations g
		JOIN knowledge_bases k ON k.id = g.kb_id AND k.deleted_at IS NULL
		JOIN pg_class t ON t.oid = to_regclass('chunks_g' || g.id)
		JOIN pg_index p ON p.indrelid = 'chunks'::regclass
		WHERE g.state <> 'dead'
		  AND NOT EXISTS (SELECT 1 FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid AND x.indisvalid
		                  WHERE i.inhparent = p.indexrelid AND x.indrelid = t.oid)
		ORDER BY 1, 2, 3, 4 LIMIT 20`
	waitingJobs = `SELECT tenant, kb, id::text, reason FROM jobs WHERE state = 'waiting' ORDER BY id LIMIT 20`
)

// analyzers finds knowledge bases whose terms this program would not make any more: their queries and documents
// are cut into terms differently, or not as well as they could be.
func analyzers(ctx context.Context, p *patient) []Finding {
	rows, err := rowsOf(ctx, p.pool, servedAnalyzers)
	if err != nil {
		return broken("look at analyzers", err)
	}
	var out []Finding
	for _, r := range rows {
		if says := staleness(r[2], r[3]); says != "" {
			out = append(out, warn(fmt.Sprintf("knowledge base %s/%s: %s", r[0], r[1], says),
				fmt.Sprintf("weir reindex --kb %s --analyzer %s%s", r[1], lexical.Default, ofTenant(r[0])))...)
		}
	}
	if len(out) > 0 {
		return out
	}
	return ok(fmt.Sprintf("%d knowledge bases, all with %s", len(rows), lexical.Default))
}

// staleness says what is wrong with an analyzer; empty: nothing. A fingerprint was not always recorded.
func staleness(id, fingerprint string) string {
	a, err := lexical.Lookup(id)
	switch {
	case err != nil:
		return fmt.Sprintf("its analyzer %s is not known to this program: it cannot be searched", id)
	case fingerprint != "" && a.Fingerprint() != fingerprint:
		return fmt.Sprintf("its terms were made by another %s than that of this program: some words are not found", id)
	case id != lexical.Default:
		return fmt.Sprintf("it is served by analyzer %s, the present one is %s", id, lexical.Default)
	}
	return ""
}

func ofTenant(tenant string) string {
	if tenant == "default" {
		return ""
	}
	return " --tenant " + tenant
}

// generations finds what is missing of the indexes that knowledge bases are served from.
func generations(ctx context.Context, p *patient) []Finding {
	var out []Finding
	rows, err := rowsOf(ctx, p.pool, partitionsWithoutIndex)
	if err != nil {
		return broken("look at the indexes of partitions", err)
	}
	for _, r := range rows {
		out = append(out, warn(fmt.Sprintf("knowledge base %s/%s: generation %s has no valid index like %s: searching it is slow", r[0], r[1], r[2], r[3]),
			fmt.Sprintf("weir reindex --kb %s%s", r[1], ofTenant(r[0])))...)
	}
	if rows, err = rowsOf(ctx, p.pool, documentsWithoutChunks); err != nil {
		return broken("look for documents without chunks", err)
	}
	for _, r := range rows {
		out = append(out, fail(fmt.Sprintf("knowledge base %s/%s: %s documents that are said to be Ready have no chunks", r[0], r[1], r[2]),
			fmt.Sprintf("weir jobs start repair --kb %s --stale%s", r[1], ofTenant(r[0])))...)
	}
	if len(out) > 0 {
		return out
	}
	return ok("every document that is Ready is in the index")
}

// jobs finds jobs that wait for somebody.
func jobs(ctx context.Context, p *patient) []Finding {
	rows, err := rowsOf(ctx, p.pool, waitingJobs)
	if err != nil {
		return broken("look at jobs", err)
	}
	var out []Finding
	for _, r := range rows {
		out = append(out, warn(fmt.Sprintf("job %s of knowledge base %s/%s waits: %s", r[2], r[0], r[1], r[3]), fmt.Sprintf("weir jobs get %s%s", r[2], ofTenant(r[0])))...)
	}
	if len(out) > 0 {
		return out
	}
	return ok("none waits for somebody")
}
