package retriever_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// wire makes requests with headers of the test's choosing and a patience of its own.
type wire struct {
	l      *lab
	header bus.Header
	op     string // default retrieve
}

func (w *wire) call(_ context.Context, kb, body string, out any) error {
	m := nats.NewMsg(messages.RPCSubject("acme", kb, cmp.Or(w.op, messages.OpRetrieve)))
	m.Data = []byte(body)
	for k, v := range w.header {
		m.Header[k] = []string{v}
	}
	reply, err := w.l.nc.RequestMsg(m, testkit.Patience)
	if err != nil {
		return err
	}
	var env messages.Envelope
	if err := json.Unmarshal(reply.Data, &env); err != nil {
		return err
	}
	if err := env.Err(); err != nil || out == nil {
		return err
	}
	return json.Unmarshal(env.Data, out)
}

// inTime makes a request of which a part takes all the time there is. A busy machine may need longer for the rest, so it
// gets longer until the answer is enough.
func (l *lab) inTime(scope, body string, enough func(messages.RetrieveReply) bool) messages.RetrieveReply {
	l.tb.Helper()
	for ms := 1000; ; ms *= 2 {
		var r messages.RetrieveReply
		err := (&wire{l: l, header: bus.Header{messages.HeaderDeadline: strconv.Itoa(ms)}}).call(l.tb.Context(), scope, body, &r)
		if err == nil && enough(r) {
			return r
		}
		if ms > 30_000 {
			l.tb.Fatalf("within %d ms: got %+v, %v", ms, r, err)
		}
	}
}

// gate stands between a client and a database and can be shut.
type gate struct {
	url, addr, behind string
	tb                testing.TB
	mu                sync.Mutex
	listener          net.Listener
	conns             []net.Conn
	wg                sync.WaitGroup
}

func newGate(tb testing.TB, database string) *gate {
	tb.Helper()
	u, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{tb: tb, behind: u.Host, addr: "127.0.0.1:0"}
	g.open()
	tb.Cleanup(g.close)
	u.Host = g.addr
	g.url = u.String()
	return g
}

func (g *gate) open() {
	g.tb.Helper()
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.mu.Lock()
	g.listener, g.addr = l, l.Addr().String()
	g.mu.Unlock()
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.join(c)
		}
	}()
}

func (g *gate) join(c net.Conn) {
	s, err := net.Dial("tcp", g.behind)
	if err != nil {
		_ = c.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, c, s)
	g.mu.Unlock()
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		g.wg.Add(1)
		go func() {
			defer g.wg.Done()
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		}()
	}
}

func (g *gate) close() {
	g.mu.Lock()
	_ = g.listener.Close()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
	g.mu.Unlock()
	g.wg.Wait()
}
