package e2e_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestPipeline runs on one system; each part has a tenant of its own.
func TestPipeline(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	s := start(t, options{quiet: true, housekeep: 300 * time.Millisecond, queryGrace: 100 * time.Millisecond, tracer: tracers(t, spans)})
	for _, part := range []struct {
		name string
		test func(*system)
	}{
		{"bad input over the stream", badStream},
		{"bad input as requests", badRequests},
		{"strange subjects", strangeSubjects},
		{"bad deletes", badDeletes},
		{"one trace", oneTrace(spans)},
		{"from submit to answer", fromSubmitToAnswer},
		{"update is atomic", updateIsAtomic},
		{"failed update", failedUpdate},
		{"overtaken", overtaken},
		{"same content while open", sameContentWhileOpen},
		{"told late", toldLate},
		{"deleted", deleted},
		{"deleted on the way", deletedOnTheWay},
		{"unchanged", unchanged},
		{"idempotency keys", idempotencyKeys},
		{"edited paragraph", editedParagraph},
		{"uploads", uploads},
		{"upload twice", uploadTwice},
		{"split file", splitFile},
		{"two tenants", twoTenants},
		{"subspaces", subspaces},
		{"filters", filters},
		{"index types", indexTypes},
		{"deleted kb", deletedKB},
		{"replayed", replayed},
		{"replayed submit", replayedSubmit},
		{"formats", formats},
		{"sizes", sizes},
		{"ids", ids},
		{"last batches at once", lastBatchesAtOnce},
		{"reindexed", reindexed},
		{"rechunked", rechunked},
		{"approved job", approvedJob},
		{"failed builds", failedBuilds},
		{"written during jobs", writtenDuringJobs},
		{"incremental", incremental},
		{"repaired", repaired},
		{"interrupted", interrupted},
		{"judged during a job", judgedDuringJob},
		{"stores keep their contract", storesKeepTheirContract},
		{"go client", goClient},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(s.as(t, tenantName(t)))
		})
	}
}
