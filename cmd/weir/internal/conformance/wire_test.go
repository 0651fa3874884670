package conformance_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// call makes a request over NATS. A retrieve is given whole, as body, or by its parts.
type call struct {
	Op string `json:"op"` // default retrieve
	KB string `json:"kb"` // last token but one of the subject
	// Tenant other than the case's.
	Tenant string            `json:"tenant"`
	Header map[string]string `json:"header"`

	Body          json.RawMessage `json:"body"`
	Query         json.RawMessage `json:"query"` // a text, or a whole retrievalQuery
	Subspace      json.RawMessage `json:"subspace"`
	Configuration json.RawMessage `json:"configuration"`
	Filter        json.RawMessage `json:"filter"`     // put into the configuration
	Expression    json.RawMessage `json:"expression"` // put into the configuration
	// Legs asks three times: both legs, the dense one, the full-text one. All must answer as expected.
	Legs bool `json:"legs"`
	// Tries are requests like this one but for the fields they give.
	Tries []call `json:"tries"`
	// Repeat asks as often; every answer must be the same.
	Repeat int `json:"repeat"`
	// Attempts is how often the request may be made until it was quick enough: time depends on the machine. Each
	// has its number for {attempt} in the body, so that nothing is known from the one before.
	Attempts int    `json:"attempts"`
	Save     string `json:"save"` // keeps the results under a name
	// Until asks until the answer is like that.
	Until  *expect `json:"until"`
	Expect *expect `json:"expect"`
}

type submit struct {
	KB       string                  `json:"kb"`
	Document json.RawMessage         `json:"document"`
	Until    messages.DocumentStatus `json:"until"` // waited for; empty: nothing is
}

// unseen are texts that must not have come to a place.
type unseen struct {
	Logs []string `json:"logs"` // of any service at the default level
	SQL  []string `json:"sql"`  // texts of statements; values travel apart
}

func (r *run) submit(t testing.TB, s *submit) {
	t.Helper()
	got := r.w.submit(t, r.tenant, s.KB, s.Document)
	if s.Until != "" {
		r.w.await(t, r.tenant, s.KB, got, s.Until)
	}
}

func (r *run) unseen(t testing.TB, u *unseen) {
	t.Helper()
	log := r.w.log.String()
	if len(u.Logs) > 0 && log == "" {
		r.errorf(t, "nothing was logged at all")
	}
	for _, text := range u.Logs {
		if i := strings.Index(log, text); i >= 0 {
			r.errorf(t, "the log holds %q: …%s", text, clip(log[max(0, i-80):]))
		}
	}
	for _, text := range u.SQL {
		if sql, err := r.w.sql.holding(text); err != nil || sql != "" {
			r.errorf(t, "a statement holds %q (%v): %s", text, err, clip(sql))
		}
	}
}

// over returns the try with what it leaves open taken from c.
func (c *call) over(try call) call {
	from, to := reflect.ValueOf(c).Elem(), reflect.ValueOf(&try).Elem()
	for i := range to.NumField() {
		if to.Field(i).IsZero() && to.Type().Field(i).Name != "Tries" {
			to.Field(i).Set(from.Field(i))
		}
	}
	return try
}

func (r *run) call(t testing.TB, c *call) {
	t.Helper()
	for i := range c.Tries {
		try := c.over(c.Tries[i])
		was := r.at
		r.at = fmt.Sprintf("%s, try %d", was, i+1)
		r.call(t, &try)
		r.at = was
	}
	if len(c.Tries) > 0 {
		return
	}
	if c.Expect == nil {
		c.Expect = &expect{}
	}
	if !c.Legs {
		r.ask(t, c, nil)
		return
	}
	for _, legs := range [][]string{{"DENSE_VECTOR", "FULL_TEXT"}, {"DENSE_VECTOR"}, {"FULL_TEXT"}} {
		r.ask(t, c, legs)
	}
}

// ask sends the request as often as wanted and compares every answer.
func (r *run) ask(t testing.TB, c *call, legs []string) {
	t.Helper()
	body, err := c.body(legs)
	r.must(t, err)
	if c.Attempts > 0 {
		r.attempt(t, c, body)
		return
	}
	var first []hit
	for n := range max(c.Repeat, 1) {
		got := r.send(t, c, body)
		problems := c.Expect.compare(r, got)
		for _, problem := range problems {
			r.errorf(t, "%s\n%s", clip(string(body)), problem)
		}
		if len(problems) > 0 {
			return
		}
		if n == 0 {
			first = got.hits
		} else if !equalHits(first, got.hits, 0) {
			r.errorf(t, "%s\nanswer %d was %v, the first %v", clip(string(body)), n+1, got.hits, first)
		}
	}
	if c.Save != "" {
		r.saved[c.Save] = first
	}
}

// attempt sends the request until it is answered in time, and compares the last answer.
func (r *run) attempt(t testing.TB, c *call, body []byte) {
	t.Helper()
	limit, err := time.ParseDuration(c.Expect.Within)
	r.must(t, err)
	var got *answer
	for n := range c.Attempts {
		if got = r.send(t, c, bytes.ReplaceAll(body, []byte("{attempt}"), []byte(strconv.Itoa(n+1)))); got.took <= limit {
			break
		}
	}
	for _, problem := range c.Expect.compare(r, got) {
		r.errorf(t, "%s\n%s", clip(string(body)), problem)
	}
}

// send makes the request; where the case waits, again and again.
func (r *run) send(t testing.TB, c *call, body []byte) *answer {
	t.Helper()
	var got *answer
	once := func() error {
		began := time.Now()
		got = r.w.raw(messages.RPCSubject(cmp.Or(c.Tenant, r.tenant), c.KB, cmp.Or(c.Op, messages.OpRetrieve)), c.Header, body)
		got.took = time.Since(began)
		if c.Until == nil {
			return nil
		}
		if problems := c.Until.compare(r, got); len(problems) > 0 {
			return errors.New(strings.Join(problems, "; "))
		}
		return nil
	}
	testkit.Eventually(t, once)
	return got
}

// raw sends a request as any client would and reads the envelope of the reply.
func (w *world) raw(subject string, header map[string]string, body []byte) *answer {
	m := nats.NewMsg(subject)
	m.Data = body
	for k, v := range header {
		m.Header[k] = []string{v} // names on the wire are as they are written
	}
	reply, err := w.nc.RequestMsg(m, testkit.Patience)
	if err != nil {
		return &answer{err: err}
	}
	var env messages.Envelope
	if err := json.Unmarshal(reply.Data, &env); err != nil {
		return &answer{err: fmt.Errorf("read the reply %q: %w", clip(string(reply.Data)), err)}
	}
	return &answer{envelope: reply.Data, data: env.Data, err: env.Err()}
}

// body makes the request's body.
func (c *call) body(legs []string) (json.RawMessage, error) {
	if c.Body != nil {
		return expand(c.Body)
	}
	if c.Query == nil {
		return json.RawMessage("{}"), nil
	}
	query := c.Query
	if bytes.HasPrefix(bytes.TrimSpace(query), []byte(`"`)) || bytes.Contains(query, []byte(`"$text"`)) && !bytes.Contains(query, []byte(`"type"`)) {
		query = object("type", json.RawMessage(`"TEXT"`), "text", query)
	}
	configuration, err := c.configured(legs)
	if err != nil {
		return nil, err
	}
	parts := []any{"retrievalQuery", query, "explain", json.RawMessage("true")}
	if configuration != nil {
		parts = append(parts, "retrievalConfiguration", configuration)
	}
	if c.Subspace != nil {
		parts = append(parts, "subspace", c.Subspace)
	}
	return expand(object(parts...))
}

// configured adds the filters and the legs to the configuration.
func (c *call) configured(legs []string) (json.RawMessage, error) {
	if c.Filter == nil && c.Expression == nil && legs == nil {
		return c.Configuration, nil
	}
	parts := map[string]json.RawMessage{}
	if c.Configuration != nil {
		if err := json.Unmarshal(c.Configuration, &parts); err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
	}
	if c.Filter != nil {
		parts["filter"] = c.Filter
	}
	if c.Expression != nil {
		parts["filterExpression"] = c.Expression
	}
	if legs != nil {
		list, err := json.Marshal(legs)
		if err != nil {
			return nil, err
		}
		parts["searchType"] = list
	}
	var all []any
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, k, parts[k])
	}
	return object(all...), nil
}

// object writes keys and raw values in their order, every value as it stands.
func object(parts ...any) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i < len(parts); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, _ := parts[i+1].(json.RawMessage)
		fmt.Fprintf(&b, "%q:%s", parts[i], raw)
	}
	b.WriteByte('}')
	return b.Bytes()
}
