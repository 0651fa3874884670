package retriever_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Texts of the benchmark: 160 words of a skewed vocabulary of 5,000, about what a chunk has.
func benchText(rng *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("word%d", min(rng.IntN(5000), rng.IntN(5000), rng.IntN(5000)))
	}
	return strings.Join(out, " ")
}

const (
	benchChunks = 5000
	benchDims   = 384
)

// BenchmarkRetrieve is one caller's hybrid query over NATS, every query another one. It reports the
// medians of the round trip without embedding, of the database's and the scorer's part, and of what is
// left: encoding, NATS, fusion.
func BenchmarkRetrieve(b *testing.B) {
	l := newLab(b, setup{dims: benchDims})
	kb := l.kb("docs", nil)
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed
	for d := range benchChunks / 100 {
		chunks := make([]string, 100)
		for i := range chunks {
			chunks[i] = benchText(rng, 160)
		}
		l.put(kb, messages.DefaultSubspace, fmt.Sprintf("d%03d", d), chunks...)
	}
	if _, err := l.pool.Exec(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
	for merged := true; merged; {
		var err error
		if merged, err = l.store.MergeSegments(b.Context(), kb.Generation.ID); err != nil {
			b.Fatal(err)
		}
	}
	for range 12 { // connections, plans, caches
		l.retrieve("docs", ask(benchText(rng, 5), ""))
	}
	var whole, sql, score, rest []float64
	for b.Loop() {
		body := ask(benchText(rng, 5), "")
		began := time.Now()
		reply, err := l.nc.Request(messages.RPCSubject("acme", "docs", messages.OpRetrieve), []byte(body), 10*time.Second)
		took := float64(time.Since(began).Microseconds()) / 1000
		if err != nil {
			b.Fatal(err)
		}
		var env messages.Envelope
		var r messages.RetrieveReply
		if err := errors.Join(json.Unmarshal(reply.Data, &env), env.Err(), json.Unmarshal(env.Data, &r)); err != nil {
			b.Fatal(err)
		}
		t := r.Diagnostics.Timing
		whole, sql, score = append(whole, took-t.EmbedMillis), append(sql, t.SQLMillis), append(score, t.ScoreMillis)
		rest = append(rest, took-t.EmbedMillis-t.SQLMillis-t.ScoreMillis)
		if len(r.Results) != 20 {
			b.Fatalf("got %d results, want 20", len(r.Results))
		}
	}
	for name, list := range map[string][]float64{"p50-ms": whole, "p50-sql-ms": sql, "p50-score-ms": score, "p50-rest-ms": rest} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
}
