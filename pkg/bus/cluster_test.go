package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// memberEnv describes a server that the test binary runs instead of tests, so that a test can kill a
// real process.
const memberEnv = "BUS_TEST_MEMBER"

type member struct {
	Name, Store, Routes string
	Port, ClusterPort   int
	cmd                 *exec.Cmd
}

func serveMember(spec string) int {
	var m member
	if err := json.Unmarshal([]byte(spec), &m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s, err := server.NewServer(&server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: m.Port, JetStream: true, StoreDir: m.Store, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: m.ClusterPort},
		Routes:  server.RoutesFromStr(m.Routes),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s.Start()
	go func() { // the parent is gone when stdin ends
		var b [1]byte
		_, _ = os.Stdin.Read(b[:])
		s.Shutdown()
	}()
	s.WaitForShutdown()
	return 0
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}

func startCluster(t *testing.T) (members []*member, url string) {
	t.Helper()
	dir, ports := t.TempDir(), freePorts(t, 6)
	var routes, urls []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+i]))
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	for i := range 3 {
		m := &member{
			Name: fmt.Sprintf("n%d", i), Store: filepath.Join(dir, fmt.Sprint(i)),
			Port: ports[i], ClusterPort: ports[3+i], Routes: strings.Join(routes, ","),
		}
		m.start(t)
		members = append(members, m)
	}
	return members, strings.Join(urls, ",")
}

func (m *member) start(t *testing.T) {
	t.Helper()
	spec, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), memberEnv+"="+string(spec))
	m.cmd.Stderr = os.Stderr
	if _, err := m.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := m.cmd
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ends already when it was the victim
		_ = cmd.Wait()
	})
}

func TestKilledLeaderOfThreeLosesAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	members, url := startCluster(t)
	nc := connect(t, url)
	js := testkit.JetStream(t, nc)
	st := parseStage()
	st.Lanes, st.Filter = 2, "weir.work.parse.%d.>"
	provisionCluster(t, js, st)
	pub, err := NewPublisher(nc, PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}

	const batches, size = 60, 50
	seen := newTally()
	var last, gap atomic.Int64
	r, err := NewRunner(js, pub, func(_ context.Context, d Delivery) ([]Message, error) {
		if seen.add(d.ID) == 1 { // what is delivered again because the server that took the answer died waits for its ack wait
			now := time.Now().UnixNano()
			if prev := last.Swap(now); prev > 0 {
				gap.Store(max(gap.Load(), now-prev))
			}
		}
		return []Message{{Subject: "weir.work.embed.0.t.kb", ID: "out-" + d.ID}}, nil
	}, SubscriberConfig{Stage: st, Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	defer wg.Wait()
	defer cancel()

	for b := range batches {
		if b == batches/3 {
			killLeader(t, js, members)
		}
		msgs := make([]Message, size)
		for i := range msgs {
			msgs[i] = Message{Subject: fmt.Sprintf("weir.work.parse.%d.t.kb", i%2), ID: fmt.Sprintf("m-%d-%d", b, i), Body: make([]byte, 256)}
		}
		if _, err := pub.PublishAck(ctxOf(t), msgs...); err != nil {
			t.Fatal(err)
		}
	}
	var out int
	testkit.Eventually(t, func() error {
		handled, left := seen.keys(), messagesIn(js, messages.StreamParse)
		out = messagesIn(js, messages.StreamEmbed)
		if handled < batches*size || left != 0 || out < batches*size {
			return fmt.Errorf("%d handled, %d left, %d outputs of %d", handled, left, out, batches*size)
		}
		return nil
	})
	t.Logf("extra deliveries %d, longest gap %v", seen.total()-seen.keys(), time.Duration(gap.Load()))
	if out != batches*size {
		t.Errorf("%d outputs, want %d", out, batches*size)
	}
}

// electionWait is the ack wait: above what an election takes.
const electionWait = 20 * time.Second

// provisionCluster creates the two streams the test needs once the cluster has a leader.
func provisionCluster(t *testing.T, js jetstream.JetStream, st messages.Stage) {
	t.Helper()
	var streams []messages.Stream
	for _, s := range messages.Streams() {
		if s.Name == messages.StreamParse || s.Name == messages.StreamEmbed {
			s.MaxBytes = 64 << 20
			streams = append(streams, s)
		}
	}
	var err error
	eventually(t, "the cluster takes streams", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err = Provision(ctx, js, streams, []messages.Stage{st}, Settings{Replicas: 3, AckWait: electionWait})
		return err == nil
	})
	changes, err := Provision(ctxOf(t), js, streams, []messages.Stage{st}, Settings{AckWait: electionWait})
	if err != nil || len(changes) != 0 {
		t.Errorf("provisioned again: got %q, %v, want the replicas kept", changes, err)
	}
}

func killLeader(t *testing.T, js jetstream.JetStream, members []*member) {
	t.Helper()
	s, err := js.Stream(ctxOf(t), messages.StreamParse)
	if err != nil {
		t.Fatal(err)
	}
	leader := s.CachedInfo().Cluster.Leader
	for _, m := range members {
		if m.Name == leader {
			if err := m.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("leader %q is no member", leader)
}

// messagesIn is the depth of a stream, -1 while it cannot be told.
func messagesIn(js jetstream.JetStream, stream string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return -1
	}
	return int(s.CachedInfo().State.Msgs)
}
