package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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
// segments and postings, in batches of 1,000 chunks, on the same database in the same run. Each round has
// new documents in a knowledge base of their own, and a copy of its own.
func BenchmarkIngest(b *testing.B) {
	for _, c := range []struct{ docs, chunks, rounds int }{{2000, 10, 8}, {4000, 1, 4}} {
		b.Run(fmt.Sprintf("docs=%d/chunks=%d", c.docs, c.chunks), func(b *testing.B) {
			service.TuneGC(os.Getenv) // as every service does
			s := start(b, options{dims: 384, quiet: true, instant: true})
			reportMedian(b, b.N*c.rounds, func(round int) benchRound { return benchIngest(b, s, round, c.docs, c.chunks) })
		})
	}
}

// benchRound is what it took to write chunks, and to copy their final rows.
type benchRound struct {
	chunks             int
	took, copied       time.Duration // elapsed
	own, db, dbCopying time.Duration // processor time of this process and of Postgres, and of Postgres while copying
}

func (r benchRound) share() float64 { return 100 * r.copied.Seconds() / r.took.Seconds() }

// reportMedian runs rounds, one with -short, and reports that with the median share, and between which the shares were: other
// programs on the machine meet a round and its copy unequally. So a round is held against the mean of its copy and the one
// before, and the first of several, on a cold system, is not counted.
func reportMedian(b *testing.B, n int, once func(round int) benchRound) {
	if testing.Short() {
		n = 1
	}
	rounds := make([]benchRound, n)
	for i := range rounds {
		rounds[i] = once(i)
	}
	for i := n - 1; i > 0; i-- {
		rounds[i].copied = (rounds[i].copied + rounds[i-1].copied) / 2
	}
	rounds = rounds[min(1, n-1):]
	n = len(rounds)
	slices.SortFunc(rounds, func(x, y benchRound) int { return cmp.Compare(x.share(), y.share()) })
	r := rounds[n/2]
	perChunk := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(r.chunks) }
	b.ReportMetric(perChunk(r.own), "own-cpu-µs/chunk")
	b.ReportMetric(perChunk(r.db), "pg-cpu-µs/chunk")
	b.ReportMetric(perChunk(r.dbCopying), "copy-pg-µs/chunk")
	b.ReportMetric(float64(r.chunks)/r.took.Seconds(), "chunks/s")
	b.ReportMetric(float64(r.chunks)/r.copied.Seconds(), "copied/s")
	b.ReportMetric(r.share(), "%ofCOPY")
	b.ReportMetric(rounds[0].share(), "%least")
	b.ReportMetric(rounds[n-1].share(), "%most")
	b.ReportMetric(0, "ns/op")
}

// benchIngest is a round of BenchmarkIngest.
func benchIngest(b *testing.B, s *system, round, docs, chunks int) benchRound {
	kb := fmt.Sprint("bench", round)
	generation := s.createKB(messages.CreateKB{KnowledgeBaseName: kb}).Generation
	bodies := benchDocs(uint64(round), docs, chunks)
	ready := s.readyDocs(kb, docs)
	r := benchRound{chunks: docs * chunks}
	own, db, begin := ownCPU(), s.postgresCPU(), time.Now()
	for i, body := range bodies {
		if _, err := s.js.PublishAsync(messages.SubmitSubject(tenant, kb), body); err != nil {
			b.Fatalf("publish %d: %v", i, err)
		}
	}
	select {
	case <-ready:
	case <-time.After(5 * time.Minute):
		b.Fatalf("only %d documents of all rounds are Ready", s.count("SELECT count(*) FROM documents WHERE status = 'Ready'"))
	}
	r.took, r.own, r.db = time.Since(begin), ownCPU()-own, s.postgresCPU()-db
	if n := s.count("SELECT count(*) FROM chunks WHERE generation = $1", generation); n != r.chunks {
		b.Fatalf("chunks: got %d, want %d", n, r.chunks)
	}
	benchUntil(b, func() bool {
		return s.count("SELECT count(*) FROM lex_segment WHERE generation = $1", generation) <= 40
	})
	r.copied, r.dbCopying = copyFinalRows(b, s, generation, r.chunks)
	return r
}

// readyDocs returns a channel that is closed when so many documents of a knowledge base have become Ready.
func (s *system) readyDocs(kb string, n int) <-chan struct{} {
	done := make(chan struct{})
	sub, err := s.nc.Subscribe("weir.events."+tenant+"."+kb+".*.Ready", func(*nats.Msg) {
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
// natural spread of frequencies. Another seed makes others.
func benchDocs(seed uint64, docs, sections int) [][]byte {
	rng := rand.New(rand.NewPCG(seed, 2))
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

// copyFinalRows copies a generation's rows, of n chunks, into another and returns how long the writing took, and Postgres's
// processor time.
func copyFinalRows(b *testing.B, s *system, from int64, n int) (took, db time.Duration) {
	ctx := b.Context()
	kb, err := pgstore.New(s.pool).CreateKB(ctx, pgstore.NewKB{Tenant: tenant, Name: fmt.Sprint("copy", from), IndexType: messages.IndexTypeHybrid, Generation: pgstore.Generation{
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
		{"chunks", "chunk_id, document_key, version, ordinal, page_from, page_to, tokens, lex_len, active, heading_path, context, content, hash, lex, embedding", "chunks WHERE generation = %d", "chunk_id"},
		{"lex_posting", "term, seg, n, data", "lex_posting WHERE generation = %d", "seg, term"},
	}
	var data [2][][]byte
	for i, t := range tables {
		total := s.count(fmt.Sprintf("SELECT count(*) FROM "+t.from, from))
		size := (total + batches - 1) / batches
		for at := 0; at < total; at += size {
			var buf bytes.Buffer
			sql := fmt.Sprintf("COPY (SELECT %d::bigint, %s FROM "+t.from+" ORDER BY %s LIMIT %d OFFSET %d) TO STDOUT BINARY",
				kb.Generation.ID, t.columns, from, t.order, size, at)
			if _, err := conn.Conn().PgConn().CopyTo(ctx, &buf, sql); err != nil {
				b.Fatal(err)
			}
			data[i] = append(data[i], buf.Bytes())
		}
	}
	before, begin := s.postgresCPU(), time.Now()
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
			return copySegments(ctx, tx, from, kb.Generation.ID, batch)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin), s.postgresCPU() - before
}

// copySegments writes one segment's row; there are about as many as batches.
func copySegments(ctx context.Context, tx pgx.Tx, from, into int64, offset int) error {
	_, err := tx.Exec(ctx, `INSERT INTO lex_segment (generation, n_docs, sum_len, chunk_ids, lens)
		SELECT $1, n_docs, sum_len, chunk_ids, lens FROM lex_segment WHERE generation = $2 ORDER BY seg LIMIT 1 OFFSET $3`, into, from, offset)
	return err
}
