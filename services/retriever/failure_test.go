package retriever_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/retriever"
)

// The rows of D-26. Those of the query's embedding are in TestFailingEmbedder and TestNoEmbedderListens, the
// database's absence in TestDatabaseGone.

func (l *lab) exec(sql string) {
	l.tb.Helper()
	if _, err := l.pool.Exec(l.tb.Context(), sql); err != nil {
		l.tb.Fatal(err)
	}
}

func partial(text, configuration string) string {
	return strings.TrimSuffix(ask(text, configuration), "}") + `,"allowPartial":true}`
}

// oneLegFails breaks a leg and checks who answers and who does not.
func (l *lab) oneLegFails(t *testing.T, failed, whole string) {
	t.Helper()
	for _, body := range []string{ask("pump", ""), ask("pump", `{"searchType":["`+failed+`"]}`), partial("pump", `{"searchType":["`+failed+`"]}`)} {
		refused(t, body, l.call("docs", messages.OpRetrieve, body, nil), messages.CodeUnavailable, "")
	}
	r := l.retrieve("docs", partial("pump", ""))
	if len(r.Results) != 3 || r.Diagnostics.Fusion != whole || !slices.Equal(r.Diagnostics.Degraded, []string{failed + ": UNAVAILABLE"}) {
		t.Errorf("partial: got %d results by %s, degraded %v; want 3 by %s", len(r.Results), r.Diagnostics.Fusion, r.Diagnostics.Degraded, whole)
	}
	if r := l.retrieve("docs", ask("pump", `{"searchType":["`+whole+`"]}`)); len(r.Results) != 3 || r.Diagnostics.Degraded != nil {
		t.Errorf("the whole leg alone: got %d results, %v", len(r.Results), r.Diagnostics.Degraded)
	}
	if log := l.log.String(); !strings.Contains(log, "a leg failed, the other answers alone") {
		t.Errorf("the failure was not logged:\n%s", log)
	}
}

func TestFullTextLegFails(t *testing.T) { // D-26
	l := newLab(t, setup{})
	l.fill(l.kb("docs", nil), 3)
	l.exec(`UPDATE lex_posting SET data = '\xffffffffffffffffffffff'`)
	l.oneLegFails(t, "FULL_TEXT", "DENSE_VECTOR")
	// What the words forbid is forbidden without that leg too.
	r := l.retrieve("docs", partial("pump -number1", `{"fullTextSearchConfiguration":{"syntax":"simple"}}`))
	if got := ids(r); !slices.Contains(got, "_default/d00#0") || slices.Contains(got, "_default/d01#0") {
		t.Errorf("partial with an exclusion: got %v, want all but d01", got)
	}
}

func TestDenseLegFails(t *testing.T) { // D-26
	l := newLab(t, setup{})
	kb := l.kb("docs", nil)
	l.fill(kb, 3)
	table := fmt.Sprintf("chunks_g%d", kb.Generation.ID)
	l.exec(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s_dims", table, table))
	l.exec(fmt.Sprintf("UPDATE %s SET embedding = '[1,2]'", table))
	l.oneLegFails(t, "DENSE_VECTOR", "FULL_TEXT")
}

func TestSlowDatabase(t *testing.T) { // D-26: mandatory work past the deadline
	l := newLab(t, setup{cfg: retriever.Config{DefaultDeadline: 2 * testkit.Patience}}) // who has that is not answered within the test
	kb := l.kb("docs", nil)
	l.fill(kb, 3)
	cursor := l.retrieve("docs", ask("pump", `{"rerankingConfiguration":{"numberOfResults":1}}`)).NextCursor
	tx, err := l.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), fmt.Sprintf("LOCK TABLE chunks_g%d IN ACCESS EXCLUSIVE MODE", kb.Generation.ID)); err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, header: bus.Header{messages.HeaderDeadline: "300"}}
	for _, body := range []string{
		ask("pump", ""), partial("pump", ""), ask("pump", `{"searchType":["DENSE_VECTOR"]}`), ask("pump", `{"searchType":["FULL_TEXT"]}`),
		withCursor(ask("pump", `{"rerankingConfiguration":{"numberOfResults":1}}`), cursor),
	} {
		refused(t, body, w.call(t.Context(), "docs", body, nil), messages.CodeDeadlineExceeded, "")
	}
	refused(t, "too late", (&wire{l: l, header: bus.Header{messages.HeaderDeadline: "0"}}).call(t.Context(), "docs", ask("pump", ""), nil), messages.CodeDeadlineExceeded, "")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := l.retrieve("docs", ask("pump", "")); len(r.Results) != 3 {
		t.Errorf("afterwards: got %d results, want 3", len(r.Results))
	}
}

func TestTooManyRequests(t *testing.T) { // D-26: OVERLOADED with Retry-After
	l := newLab(t, setup{cfg: retriever.Config{Concurrency: 1}})
	l.fill(l.kb("docs", nil), 1)
	entered, release := make(chan struct{}, 1), make(chan struct{})
	l.embed.Store(func(text string) ([]float32, error) {
		entered <- struct{}{}
		<-release
		return vectorOf(text, 8), nil
	})
	done := make(chan error, 1)
	go func() { done <- l.call("docs", messages.OpRetrieve, ask("pump", ""), nil) }()
	<-entered
	msg, err := l.nc.RequestMsg(&nats.Msg{Subject: messages.RPCSubject("acme", "docs", messages.OpRetrieve), Data: []byte(ask("pump", ""))}, testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	var env messages.Envelope
	if err := json.Unmarshal(msg.Data, &env); err != nil || env.Code != messages.CodeOverloaded || msg.Header.Get(messages.HeaderRetryAfter) != "1" {
		t.Errorf("got %s with Retry-After %q (%v), want OVERLOADED and a second", env.Code, msg.Header.Get(messages.HeaderRetryAfter), err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the one in hand: %v", err)
	}
}

// What one leg cannot do is never an empty list.
func TestNothingFailsSilently(t *testing.T) {
	l := newLab(t, setup{})
	l.fill(l.kb("docs", nil), 3)
	l.kb("words", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil })
	l.embed.Store(func(string) ([]float32, error) { return nil, errors.New("down") })
	refused(t, "dense alone", l.call("docs", messages.OpRetrieve, partial("pump", `{"searchType":["DENSE_VECTOR"]}`), nil), messages.CodeEmbeddingUnavailable, "")
	if r := l.retrieve("docs", vectorAsk(first(8), "", `{"searchType":["DENSE_VECTOR"]}`)); len(r.Results) != 3 {
		t.Errorf("a query vector needs no embedder: got %d results, want 3", len(r.Results))
	}
	refused(t, "no such mode", l.call("words", messages.OpRetrieve, partial("pump", `{"searchType":["DENSE_VECTOR"]}`), nil),
		messages.CodeRetrieverModeInvalid, "retrievalConfiguration.searchType")
}
