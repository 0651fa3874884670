package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// benchIndexed publishes documents of ten chunks and waits until they are Ready and their segments merged.
func benchIndexed(b *testing.B, docs int) *system {
	s := start(b, options{dims: 384, quiet: true, instant: true})
	s.createKB(messages.CreateKB{KnowledgeBaseName: "bench"})
	for i, body := range benchDocs(1, docs, 10) {
		if _, err := s.js.PublishAsync(messages.SubmitSubject(tenant, "bench"), body); err != nil {
			b.Fatalf("publish %d: %v", i, err)
		}
	}
	benchUntil(b, func() bool { return s.count("SELECT count(*) FROM documents WHERE status = 'Ready'") == docs })
	benchUntil(b, func() bool { return s.count("SELECT count(*) FROM lex_segment") <= 40 })
	return s
}

func benchUntil(b *testing.B, done func() bool) {
	for begin := time.Now(); !done(); {
		if time.Since(begin) > 5*time.Minute {
			b.Fatal("not done within five minutes")
		}
		time.Sleep(10 * time.Millisecond) // a benchmark: there is nothing else to wait on
	}
}

// BenchmarkReindex builds 10,000 chunks anew with full reuse, through the stages of every document, and compares the
// chunks per second with one connection that copies exactly the final rows, as BenchmarkIngest does.
func BenchmarkReindex(b *testing.B) {
	const docs, chunks, rounds = 1000, 10_000, 4
	s := benchIndexed(b, docs)
	reportMedian(b, b.N*rounds, func(int) benchRound {
		r := benchRound{chunks: chunks}
		live := s.generation("bench")
		r.copied, r.dbCopying = copyFinalRows(b, s, live, chunks)
		own, db, begin := ownCPU(), s.postgresCPU(), time.Now()
		j := s.startJob(messages.StartJob{KnowledgeBaseName: "bench", RetainSeconds: new(int64)})
		benchUntil(b, func() bool { return s.job(j.ID).State == messages.JobDone })
		r.took, r.own, r.db = time.Since(begin), ownCPU()-own, s.postgresCPU()-db
		if c := s.job(j.ID).Counts; c.Done != docs || c.Chunks != chunks || c.Reused != chunks {
			b.Fatalf("counts: got %+v, want full reuse", c)
		}
		return r
	})
}

// BenchmarkQueryDuringReindex asks one query after the other while another space is built, and compares the times with
// those at rest: the job is paused and resumed in turn, so that whatever else the machine does meets both.
func BenchmarkQueryDuringReindex(b *testing.B) {
	const docs = 1000
	for range b.N {
		s := benchIndexed(b, docs)
		for i := range 50 {
			s.askTimed(b, i)
		}
		j := s.startJob(messages.StartJob{KnowledgeBaseName: "bench", Embedding: otherPrefix("bench two: ")})
		var idle, during []time.Duration
		turn := func(into *[]time.Duration) {
			for i, begin := 0, time.Now(); time.Since(begin) < time.Second; i++ {
				*into = append(*into, s.askTimed(b, i))
			}
		}
		for s.job(j.ID).State != messages.JobDone {
			turn(&during)
			if s.job(j.ID).State == messages.JobDone || s.changeJob(messages.OpJobPause, j.ID) != nil {
				break
			}
			benchUntil(b, func() bool {
				return s.count("SELECT count(*) FROM document_builds WHERE state = 'pending' AND queued") == 0
			})
			turn(&idle)
			if err := s.changeJob(messages.OpJobResume, j.ID); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(percentile(idle, 95), "idle-p95-ms")
		b.ReportMetric(percentile(during, 95), "during-p95-ms")
		b.ReportMetric(percentile(idle, 50), "idle-p50-ms")
		b.ReportMetric(percentile(during, 50), "during-p50-ms")
		b.ReportMetric(percentile(during, 95)/percentile(idle, 95), "x-p95")
		b.ReportMetric(float64(len(during)), "queries")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkQueryDuringCopy is the same while chunks are copied, from generation to generation, job after job.
func BenchmarkQueryDuringCopy(b *testing.B) {
	const docs, jobs = 1000, 4
	for range b.N {
		s := benchIndexed(b, docs)
		for i := range 50 {
			s.askTimed(b, i)
		}
		var idle, during []time.Duration
		for range jobs {
			for i, begin := 0, time.Now(); time.Since(begin) < time.Second; i++ {
				idle = append(idle, s.askTimed(b, i))
			}
			j := s.startJob(messages.StartJob{KnowledgeBaseName: "bench", RetainSeconds: new(int64)})
			for i := 0; ; i++ {
				during = append(during, s.askTimed(b, i))
				if i%5 == 4 && s.count("SELECT count(*) FROM jobs WHERE id = $1 AND state = 'running'", j.ID) == 0 {
					break
				}
			}
		}
		b.ReportMetric(percentile(idle, 95), "idle-p95-ms")
		b.ReportMetric(percentile(during, 95), "during-p95-ms")
		b.ReportMetric(percentile(during, 95)/percentile(idle, 95), "x-p95")
		b.ReportMetric(float64(len(during)), "queries")
		b.ReportMetric(0, "ns/op")
	}
}

func (s *system) changeJob(op string, id int64) error {
	_, err := call[messages.JobInfo](s, messages.TenantScope, op, messages.JobRef{ID: id})
	return err
}

func (s *system) askTimed(b *testing.B, i int) time.Duration {
	text := "w" + word(uint64(i%50)) + " w" + word(uint64(i%37+20)) //nolint:gosec // small
	began := time.Now()
	_, err := call[messages.RetrieveReply](s, "bench", messages.OpRetrieve, messages.RetrieveRequest{
		Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: text},
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// percentile in milliseconds.
func percentile(times []time.Duration, p int) float64 {
	slices.Sort(times)
	return float64(times[min(len(times)*p/100, len(times)-1)].Microseconds()) / 1000
}
