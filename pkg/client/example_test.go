package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

// Documents are published and waited for, and questions asked.
func Example() {
	nc, stop := running() // in a program: nats.Connect(url)
	defer stop()
	c, err := client.New(nc, "acme", client.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	if _, err := c.CreateKB(ctx, messages.CreateKB{KnowledgeBaseName: "manuals"}); err != nil {
		panic(err)
	}
	kb, text := c.KB("manuals"), "Grease the bearing every week."
	e, err := kb.PublishWait(ctx, client.Document{Submit: messages.Submit{DocID: "pump", Text: &text}})
	if err != nil {
		panic(err)
	}
	fmt.Println(e.DocID, e.Status)

	request, err := client.NewSearch().Text("how often is it greased").MaxResults(3).Build()
	if err != nil {
		panic(err)
	}
	reply, err := kb.Retrieve(ctx, request)
	if err != nil {
		panic(err)
	}
	for _, r := range reply.Results {
		fmt.Println(r.DocID, r.Content)
	}
	// Output:
	// pump Ready
	// pump Grease the bearing every week.
}

// What a service refuses has a code, a field and a reason.
func ExampleClient_Call_errors() {
	nc, stop := running()
	defer stop()
	c, err := client.New(nc, "acme", client.Options{})
	if err != nil {
		panic(err)
	}
	_, err = c.KB("unknown").Get(context.Background())
	var refused *messages.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Message)
	}
	// Output: KNOWLEDGE_BASE_NOT_FOUND there is no unknown
}

// Conditions are joined by AND where nothing else is said, and groups are parentheses.
func ExampleSearchBuilder() {
	b := client.NewSearch().
		Text("opening hours").
		MinScore(0.65).
		Eq("tenant", "t1").
		Group(func(c *client.Conditions) {
			c.Eq("visibility", "public").Eq("owner", "u7", client.Or)
		}).
		Between("year", 2020, 2024)
	expression, err := b.Expression()
	if err != nil {
		panic(err)
	}
	fmt.Println(expression)
	request, err := b.Build()
	if err != nil {
		panic(err)
	}
	fmt.Println(string(request.Configuration.Filter))
	// Output:
	// (tenant = 't1' AND (visibility = 'public' OR owner = 'u7') AND (year >= 2020 AND year <= 2024))
	// {"andAll":[{"equals":{"key":"tenant","value":"t1"}},{"orAll":[{"equals":{"key":"visibility","value":"public"}},{"equals":{"key":"owner","value":"u7"}}]},{"andAll":[{"greaterThanOrEquals":{"key":"year","value":2020}},{"lessThanOrEquals":{"key":"year","value":2024}}]}]}
}

// A wrong condition is told of at once and never left out: nothing is built until it is dealt with.
func ExampleSearchBuilder_Err() {
	fromUser := "category = 'art' AND"
	b := client.NewSearch().Text("bread").Eq("visibility", "public").Condition(fromUser)
	fmt.Println(b.Err())
	_, err := b.Build()
	fmt.Println(err != nil)
	// Output:
	// position 20: expected the name of a field, found the end
	// true
}

// A retriever asks a knowledge base in the way programs around language models expect.
func ExampleHybridRetriever() {
	nc, stop := running()
	defer stop()
	c, err := client.New(nc, "acme", client.Options{})
	if err != nil {
		panic(err)
	}
	r, err := client.NewHybridRetriever(c.Store("library"), client.RetrieverOptions{})
	if err != nil {
		panic(err)
	}
	passages, err := r.Retrieve(context.Background(), "when is it open", client.RetrievalConfig{
		TopK: new(2), Filters: map[string]any{"kind": "notice"},
	})
	if err != nil {
		panic(err)
	}
	for _, p := range passages {
		fmt.Printf("%s: %s\n", p.ChunkID, p.Text)
	}
	// Output: hours#0: The library opens at nine.
}

// Equal texts of several knowledge bases are one passage, which names all of them.
func ExampleMultiRetriever() {
	nc, stop := running()
	defer stop()
	c, err := client.New(nc, "acme", client.Options{})
	if err != nil {
		panic(err)
	}
	var sources []client.Source
	for _, kb := range []string{"library", "archive"} {
		r, err := client.NewVectorRetriever(c.Store(kb), client.RetrieverOptions{})
		if err != nil {
			panic(err)
		}
		sources = append(sources, client.Source{KB: kb, Retriever: r})
	}
	m, err := client.NewMultiRetriever(sources...)
	if err != nil {
		panic(err)
	}
	found, err := m.RetrieveWithSource(context.Background(), "when is it open", client.RetrievalConfig{})
	if err != nil {
		panic(err)
	}
	for _, r := range found.Results {
		fmt.Println(r.Text, r.KBIDs)
	}
	fmt.Println(len(found.Failures), "failures")
	// Output:
	// The library opens at nine. [library archive]
	// 0 failures
}

// running is a connection to a server where a stand-in for Weir's services answers.
func running() (nc *nats.Conn, stop func()) {
	dir, err := os.MkdirTemp("", "weir-client")
	if err != nil {
		panic(err)
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		panic(err)
	}
	srv.Start()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nc, err = nats.Connect(srv.ClientURL(), nats.MaxReconnects(-1))
	if err != nil {
		panic(err)
	}
	closed := nc.StatusChanged(nats.CLOSED)
	if err := serveExamples(ctx, nc); err != nil {
		panic(err)
	}
	return nc, func() {
		nc.Close()
		<-closed
		srv.Shutdown()
		srv.WaitForShutdown()
		_ = os.RemoveAll(dir)
	}
}

func serveExamples(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := bus.Provision(ctx, js, messages.Streams(), messages.Stages(), bus.Settings{MemoryStorage: true}); err != nil {
		return err
	}
	_, err = nc.Subscribe("weir.docs.submit.acme.*", func(m *nats.Msg) {
		s, err := messages.DecodeSubmit(m.Header.Get, m.Data)
		if err != nil {
			panic(err)
		}
		e := messages.Event{Tenant: "acme", KB: "manuals", DocID: s.DocID, Status: messages.StatusReady, SubmitID: m.Header.Get(messages.HeaderMsgID)}
		body, _ := json.Marshal(e) // cannot fail
		if err := nc.Publish(messages.EventSubject(e.Tenant, e.KB, e.DocID, e.Status), body); err != nil {
			panic(err)
		}
	})
	if err != nil {
		return err
	}
	reply := func(data any, failure *messages.Error) nats.MsgHandler {
		env := messages.Envelope{Code: messages.CodeSuccess}
		if failure != nil {
			env = messages.Failure(failure, "")
		}
		if data != nil {
			env.Data, _ = json.Marshal(data) // cannot fail
		}
		body, _ := env.Encode() // cannot fail
		return func(m *nats.Msg) {
			if err := m.Respond(body); err != nil {
				panic(err)
			}
		}
	}
	hours := messages.SearchResult{ID: "hours#0", DocID: "hours", Text: "The library opens at nine.", Score: 0.9}
	for subject, handle := range map[string]nats.MsgHandler{
		"weir.rpc.acme._.kb_create":      reply(messages.KBInfo{KnowledgeBaseName: "manuals"}, nil),
		"weir.rpc.acme.unknown.kb_get":   reply(nil, messages.Errorf(messages.CodeKBNotFound, "there is no unknown")),
		"weir.rpc.acme.manuals.retrieve": reply(messages.RetrieveReply{Results: []messages.RetrievedChunk{{DocID: "pump", Content: "Grease the bearing every week."}}}, nil),
		"weir.rpc.acme.*.search":         reply(messages.SearchReply{Results: []messages.SearchResult{hours}}, nil),
	} {
		if _, err := nc.Subscribe(subject, handle); err != nil {
			return err
		}
	}
	return nc.Flush()
}
