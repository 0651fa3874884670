package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
)

// BenchmarkIngest takes documents through all services, with an embedding server that answers at once,
// and compares the chunks per second with one connection that copies exactly the final rows of chunks,
// segments and postings, in batches of 1,000 chunks, on the same database in the same run.
func BenchmarkIngest(b *testing.B) {
	for _, c := range []struct{ docs, chunks int }{{2000, 10}, {4000, 1}} {
		b.Run(fmt.Sprintf("docs=%d/chunks=%d", c.docs, c.chunks), func(b *testing.B) {
			for range b.N {
				benchmarkIngest(b, c.docs, c.chunks)
			}
		})
	}
}

func benchmarkIngest(b *testing.B, docs, chunks int) {
	service.TuneGC(os.Getenv) // as every service does
	s := start(b, options{dims: 384, quiet: true, instant: true})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "bench"})
	bodies := benchDocs(docs, chunks)
	ready := s.readyDocs(docs)
	own, db, begin := ownCPU(), s.postgresCPU(), time.Now()
	for i, body := range bodies {
		if _, err := s.js.PublishAsync(messages.SubmitSubject(tenant, "bench"), body); err != nil {
			b.Fatalf("publish %d: %v", i, err)
		}
	}
	select {
	case <-ready:
	case <-time.After(5 * time.Minute):
		b.Fatalf("only %d documents are Ready", s.count("SELECT count(*) FROM documents WHERE status = 'Ready'"))
	}
	ingest := time.Since(begin)
	own, db = ownCPU()-own, s.postgresCPU()-db
	n := s.count("SELECT count(*) FROM chunks")
	if n != docs*chunks {
		b.Fatalf("chunks: got %d, want %d", n, docs*chunks)
	}
	for s.count("SELECT count(*) FROM lex_segment") > 40 {
		time.Sleep(20 * time.Millisecond) // the pause of a poll
	}
	base := copyFinalRows(b, s, n)
	b.ReportMetric(float64(own.Microseconds())/float64(n), "own-cpu-µs/chunk")
	b.ReportMetric(float64(db.Microseconds())/float64(n), "pg-cpu-µs/chunk")
	b.ReportMetric(float64(n)/ingest.Seconds(), "chunks/s")
	b.ReportMetric(float64(n)/base.Seconds(), "copied/s")
	b.ReportMetric(100*base.Seconds()/ingest.Seconds(), "%ofCOPY")
	b.ReportMetric(0, "ns/op")
}

// readyDocs returns a channel that is closed when so many documents have become Ready.
func (s *system) readyDocs(n int) <-chan struct{} {
	done := make(chan struct{})
	sub, err := s.nc.Subscribe("weir.events."+tenant+".bench.*.Ready", func(*nats.Msg) {
		if n--; n == 0 {
			close(done)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = sub.Unsubscribe() }) //nolint:errcheck // the connection ends too
	return done
}

// benchWords fills a chunk of the default size.
const benchWords = 180

// benchDocs makes Markdown bodies of so many sections, each of which becomes a chunk, of words with a
// natural spread of frequencies.
func benchDocs(docs, sections int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 4, 40_000)
	out := make([][]byte, docs)
	for i := range out {
		var text strings.Builder
		for j := range sections {
			fmt.Fprintf(&text, "# Section %d of %d\n\n", j, i)
			for range benchWords {
				fmt.Fprintf(&text, "w%s ", word(zipf.Uint64()))
			}
			text.WriteString("\n\n")
		}
		md := text.String()
		body, err := messages.Encode(messages.Submit{DocID: fmt.Sprintf("d%d", i), ContentType: "text/markdown", Text: &md})
		if err != nil {
			panic(err)
		}
		out[i] = body
	}
	return out
}

func word(n uint64) string {
	letters := []byte{}
	for n += 26; n > 0; n /= 26 {
		letters = append(letters, byte('a'+n%26))
	}
	return string(letters)
}

// copyFinalRows copies the live rows into a generation of their own and returns how long the writing took.
func copyFinalRows(b *testing.B, s *system, n int) time.Duration {
	ctx := b.Context()
	kb, err := pgstore.New(s.pool).CreateKB(ctx, pgstore.NewKB{Tenant: tenant, Name: "copy", IndexType: messages.IndexTypeHybrid, Generation: pgstore.Generation{
		Space: &messages.Space{Model: model, Dims: 384, Metric: "cosine"}, Parser: "p1", Analyzer: "lex1",
	}})
	if err != nil {
		b.Fatal(err)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	batches := (n + 999) / 1000
	type table struct{ name, columns, from, order string }
	tables := []table{
		{"chunks", "chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len, active, heading_path, context, content, hash, lex, embedding", "chunks WHERE generation <> %d", "chunk_id"},
		{"lex_posting", "term, seg, n, data", "lex_posting WHERE generation <> %d", "seg, term"},
	}
	var data [2][][]byte
	for i, t := range tables {
		total := s.count(fmt.Sprintf("SELECT count(*) FROM "+t.from, kb.Generation.ID))
		size := (total + batches - 1) / batches
		for at := 0; at < total; at += size {
			var buf bytes.Buffer
			sql := fmt.Sprintf("COPY (SELECT %d::bigint, %s FROM "+t.from+" ORDER BY %s LIMIT %d OFFSET %d) TO STDOUT BINARY",
				kb.Generation.ID, t.columns, kb.Generation.ID, t.order, size, at)
			if _, err := conn.Conn().PgConn().CopyTo(ctx, &buf, sql); err != nil {
				b.Fatal(err)
			}
			data[i] = append(data[i], buf.Bytes())
		}
	}
	db, begin := s.postgresCPU(), time.Now()
	for batch := range batches {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for i, t := range tables {
				if batch >= len(data[i]) {
					continue
				}
				sql := fmt.Sprintf("COPY %s (generation, %s) FROM STDIN BINARY", t.name, t.columns)
				if _, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(data[i][batch]), sql); err != nil {
					return err
				}
			}
			return copySegments(ctx, tx, kb.Generation.ID, batch)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(begin)
	b.ReportMetric(float64((s.postgresCPU()-db).Microseconds())/float64(n), "copy-pg-µs/chunk")
	return took
}

// copySegments writes one segment's row; there are about as many as batches.
func copySegments(ctx context.Context, tx pgx.Tx, generation int64, offset int) error {
	_, err := tx.Exec(ctx, `INSERT INTO lex_segment (generation, n_docs, sum_len, chunk_ids, lens)
		SELECT $1, n_docs, sum_len, chunk_ids, lens FROM lex_segment WHERE generation <> $1 ORDER BY seg LIMIT 1 OFFSET $2`, generation, offset)
	return err
}
