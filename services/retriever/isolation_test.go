package retriever_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

const (
	isolationQueries = 10_000
	isolationBatch   = 50 // queries a request
	isolationDocs    = 12 // a knowledge base
	fewestChanges    = 20 // meanwhile
)

// resident is a knowledge base whose every chunk bears its mark.
type resident struct {
	kb   pgstore.KB
	mark string
}

// residents are two knowledge bases of each of two tenants, of the same names and with the same words in them.
func (l *lab) residents() []resident {
	var out []resident
	for _, tenant := range []string{"acme", "globex"} {
		for _, name := range []string{"docs", "notes"} {
			r := resident{l.kb(name, func(n *pgstore.NewKB) { n.Tenant = tenant }), "mark-" + tenant + "-" + name}
			out = append(out, r)
			for d := range isolationDocs {
				l.settle(r, d, 0)
			}
		}
	}
	return out
}

// settle makes a version of a document live.
func (l *lab) settle(r resident, doc, version int) {
	l.tb.Helper()
	name := fmt.Sprintf("d%02d", doc)
	l.metadata[name] = fmt.Sprintf(`{"of":%q}`, r.mark)
	l.put(r.kb, messages.DefaultSubspace, name, fmt.Sprintf("pump seal%d %s v%d", doc%3, r.mark, version), fmt.Sprintf("valve %s v%d", r.mark, version))
}

// batch is a request of as many queries as there are in one, and the marks that their answers must bear.
func (r resident) batch(rng *rand.Rand, sibling resident) (subject, body string, marks []string) {
	const counts = `"denseVectorSearchConfiguration":{"numberOfResults":4},"fullTextSearchConfiguration":{"numberOfResults":4},"rerankingConfiguration":{"numberOfResults":4}`
	forms := []string{
		`"retrievalQuery":{"type":"TEXT","text":"pump seal1"},"retrievalConfiguration":{"searchType":["FULL_TEXT"],` + counts + `}`,
		`"retrievalQuery":{"type":"TEXT","vector":[1,0.5,0,0,0.2,0,0,0]},"retrievalConfiguration":{"searchType":["DENSE_VECTOR"],` + counts + `}`,
		`"retrievalQuery":{"type":"TEXT","text":"valve seal2","vector":[0,0.5,1,0,0.2,0,0,0]},"retrievalConfiguration":{` + counts + `}`,
		`"retrievalQuery":{"type":"TEXT","text":"pump"},"retrievalConfiguration":{"searchType":["FULL_TEXT"],"filterExpression":"of IS NOT NULL",` + counts + `}`,
		`"retrievalQuery":{"type":"FILTER"},"retrievalConfiguration":{"filterExpression":"of IS NOT NULL OR of IS NULL",` + counts + `}`,
	}
	scope := r.kb.Name
	if rng.IntN(2) == 0 { // both knowledge bases of the tenant in one request
		scope = messages.TenantScope
	}
	queries := make([]string, isolationBatch)
	for i := range queries {
		of := r
		if scope == messages.TenantScope && rng.IntN(2) == 0 {
			of = sibling
		}
		queries[i] = fmt.Sprintf(`{"knowledgeBaseName":%q,%s}`, of.kb.Name, forms[rng.IntN(len(forms))])
		marks = append(marks, of.mark)
	}
	return messages.RPCSubject(r.kb.Tenant, scope, messages.OpBatch), batchOf(queries...), marks
}

// Two tenants with two knowledge bases each are asked side by side, ten thousand times, while documents are
// replaced and deleted: nobody ever gets a chunk of another.
func TestTenantsAndKnowledgeBasesNeverMix(t *testing.T) {
	l := newLab(t, setup{noEmbedder: true})
	l.metadata = map[string]string{}
	all := l.residents()
	var hits, asked, changes atomic.Int64
	done := make(chan struct{})
	g, ctx := errgroup.WithContext(t.Context())
	for worker := range all {
		g.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))                                                   //nolint:gosec // a fixed seed
			for n := 0; n < isolationQueries/isolationBatch/len(all) || changes.Load() < fewestChanges; n++ { // fast as the queries may be
				if err := l.askBatch(ctx, rng, all[worker], all[worker^1], &asked, &hits); err != nil {
					return err
				}
			}
			return nil
		})
	}
	failed := make(chan error, 1)
	go func() {
		defer close(done)
		failed <- g.Wait()
	}()
	l.unrest(all, &changes, done)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d queries, %d hits, %d documents replaced or deleted meanwhile", asked.Load(), hits.Load(), changes.Load())
	if asked.Load() < isolationQueries || hits.Load() < 2*isolationQueries {
		t.Errorf("got %d queries, %d hits; want %d, and at least twice as many", asked.Load(), hits.Load(), isolationQueries)
	}
}

func (l *lab) askBatch(ctx context.Context, rng *rand.Rand, of, sibling resident, asked, hits *atomic.Int64) error {
	subject, body, marks := of.batch(rng, sibling)
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // the deadline of the request
	defer cancel()
	var reply messages.BatchReply
	if err := bus.Call(ctx, l.nc, subject, nil, []byte(body), &reply); err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	if len(reply.Results) != len(marks) {
		return fmt.Errorf("%s: got %d answers, want %d", subject, len(reply.Results), len(marks))
	}
	for i, r := range reply.Results {
		asked.Add(1)
		for _, c := range r.Results {
			hits.Add(1)
			var metadata map[string]string
			if err := json.Unmarshal(c.Metadata, &metadata); err != nil || metadata["of"] != marks[i] || !strings.Contains(c.Content, marks[i]+" ") {
				return fmt.Errorf("%s: query %d of %s got %q with metadata %s (%v)", subject, i, marks[i], c.Content, c.Metadata, err)
			}
		}
	}
	return nil
}

// unrest replaces and deletes documents until done, and counts how many.
func (l *lab) unrest(all []resident, changes *atomic.Int64, done <-chan struct{}) {
	l.tb.Helper()
	rng := rand.New(rand.NewPCG(99, 1)) //nolint:gosec // a fixed seed
	gone := map[string]bool{}
	for n := 1; ; n++ {
		changes.Store(int64(n - 1))
		select {
		case <-done:
			return
		default:
		}
		r, doc := all[rng.IntN(len(all))], rng.IntN(isolationDocs)
		id := fmt.Sprintf("%s %d", r.mark, doc)
		if gone[id] = !gone[id] && rng.IntN(4) == 0; gone[id] {
			l.remove(r.kb, fmt.Sprintf("d%02d", doc))
			continue
		}
		l.settle(r, doc, n)
	}
}
