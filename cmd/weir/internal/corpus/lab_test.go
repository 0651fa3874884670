package corpus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/retriever"
)

const (
	tenant = "acme"
	kbName = "corpus"
	// patience is how long a document may take from its publish to its end, with others before it.
	patience = 3 * time.Minute
)

// lab is the ingester, indexer and retriever in this process, and one knowledge base without vectors.
type lab struct {
	t  testing.TB
	nc *nats.Conn
	js jetstream.JetStream

	mu      sync.Mutex
	ends    map[string]messages.Event // by submit
	waiting map[string]chan struct{}
	reports map[string]ingester.ParseReport // by name
}

func newLab(t testing.TB, cfg ingester.Config) *lab {
	t.Helper()
	_, connect := testkit.NATS(t)
	l := &lab{t: t, nc: connect(), ends: map[string]messages.Event{}, waiting: map[string]chan struct{}{}, reports: map[string]ingester.ParseReport{}}
	var err error
	l.js = testkit.JetStream(t, l.nc)
	if _, err := bus.Provision(t.Context(), l.js, messages.Streams(), messages.Stages(), bus.Settings{MaxBytes: 512 << 20}); err != nil {
		t.Fatal(err)
	}
	db := testkit.Pool(t, testkit.PostgresURL(t), pgstore.Configure, func(c *pgxpool.Config) { c.MaxConns = 12 })
	l.run(cfg, pgstore.New(db), connect)
	l.watch()
	no := 0
	_, err = call[messages.KBInfo](l, messages.TenantScope, messages.OpKBCreate, nil, messages.CreateKB{
		KnowledgeBaseName: kbName, IndexType: messages.IndexTypeBM25, Subspace: true, Chunking: &messages.Chunking{Overlap: &no},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) run(cfg ingester.Config, store *pgstore.Store, connect testkit.Connect) {
	log := slog.New(slog.DiscardHandler) // the lines of the report say what is wrong
	services := testkit.NewServices(l.t)
	js := func() jetstream.JetStream { return testkit.JetStream(l.t, connect()) }
	services.Add(ingester.New(cfg, ingester.Deps{Lent: service.Lent{JS: js(), Logger: log, Ready: services.Ready}, Store: store, Parsed: l.parsed}))
	services.Add(indexer.New(indexer.Config{ReconcileEvery: time.Minute, Grace: time.Minute}, indexer.Deps{Lent: service.Lent{JS: js(), Logger: log, Ready: services.Ready}, Store: store}))
	services.Add(retriever.New(retriever.Config{}, retriever.Deps{NC: connect(), Store: store, Logger: log, Ready: services.Ready}))
	services.Start()
}

func (l *lab) parsed(r ingester.ParseReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports[r.Name] = r
}

func (l *lab) report(name string) ingester.ParseReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reports[name]
}

// watch notes the terminal events.
func (l *lab) watch() {
	_, err := l.nc.Subscribe(messages.SubjectEvents+"."+tenant+"."+kbName+".>", func(m *nats.Msg) {
		var e messages.Event
		if err := json.Unmarshal(m.Data, &e); err != nil || !e.Status.Terminal() {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, known := l.ends[e.SubmitID]; !known {
			l.ends[e.SubmitID] = e
			close(l.done(e.SubmitID))
		}
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// done is closed when a submit has ended. mu is held.
func (l *lab) done(id string) chan struct{} {
	c := l.waiting[id]
	if c == nil {
		c = make(chan struct{})
		l.waiting[id] = c
	}
	return c
}

// wait returns the terminal event of a submit.
func (l *lab) wait(id string) (messages.Event, error) {
	l.mu.Lock()
	done := l.done(id)
	l.mu.Unlock()
	select {
	case <-done:
	case <-time.After(patience):
		return messages.Event{}, fmt.Errorf("%s has no terminal event after %s", id, patience)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[id], nil
}

// publish puts a document on the stream; its id is that of its submit.
func (l *lab) publish(subspace, id string, data []byte) {
	header := nats.Header{}
	header.Set(messages.HeaderDocID, url.PathEscape(id))
	header.Set(messages.HeaderSubspace, subspace)
	msg := &nats.Msg{Subject: messages.SubmitSubject(tenant, kbName), Header: header, Data: data}
	if _, err := l.js.PublishMsg(context.Background(), msg, jetstream.WithMsgID(subspace+"/"+id)); err != nil {
		l.t.Fatalf("publish %s: %v", id, err)
	}
}

// submit asks for a document to be taken in, with its password.
func (l *lab) submit(subspace, id, password string, data []byte) (messages.SubmitReply, error) {
	header := bus.Header{messages.HeaderDocID: url.PathEscape(id), messages.HeaderSubspace: subspace, messages.HeaderPassword: url.PathEscape(password)}
	return call[messages.SubmitReply](l, kbName, messages.OpSubmit, header, data)
}

func call[T any](l *lab, scope, op string, header bus.Header, in any) (T, error) {
	var out T
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := bus.Call(ctx, l.nc, messages.RPCSubject(tenant, scope, op), header, in, &out)
	return out, err
}

// chunks lists all chunks of a document in order.
func (l *lab) chunks(subspace, id string) ([]messages.ChunkInfo, error) {
	var all []messages.ChunkInfo
	for token := ""; ; {
		page, err := call[messages.ChunkList](l, kbName, messages.OpDocChunks, nil, messages.ListChunks{
			DocID: id, Subspace: subspace, Page: messages.Page{NextToken: token, MaxResults: 100},
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Chunks...)
		if token = page.NextToken; token == "" {
			return all, nil
		}
	}
}

// search retrieves the chunks of one subspace by a text.
func (l *lab) search(subspace, text string) []messages.RetrievedChunk {
	n := 100
	out, err := call[messages.RetrieveReply](l, kbName, messages.OpRetrieve, nil, messages.RetrieveRequest{
		Subspace: []string{subspace}, Query: &messages.RetrievalQuery{Type: messages.QueryText, Text: text},
		Configuration: &messages.RetrievalConfiguration{
			SearchType: []messages.SearchType{messages.FullText}, FullText: &messages.FullTextConfig{NumberOfResults: &n},
			Reranking: &messages.RerankingConfig{NumberOfResults: &n},
		},
	})
	if err != nil {
		l.t.Errorf("retrieve %q: %v", text, err)
	}
	return out.Results
}
