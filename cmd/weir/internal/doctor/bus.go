package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	weirbus "github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
)

// slowBus is a round trip that will be felt in every answer.
const slowBus = 50 * time.Millisecond

// fullStream is the share of a stream's size from which it is worth a word.
const fullStream = 0.8

func bus(ctx context.Context, p *patient) []Finding {
	nc, err := p.Connect(ctx)
	if err != nil {
		return fail(err.Error(), "start one with `weir up --detach`, or set NATS_URL (and WEIR_NATS_CREDS) to one that runs")
	}
	p.nc = nc
	rtt, err := nc.RTT()
	if err != nil {
		return broken("ping "+service.ConnectedURL(nc).String(), err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return broken("open jetstream", err)
	}
	if _, err := js.AccountInfo(ctx); err != nil {
		return fail(fmt.Sprintf("%s has no JetStream for this account: %v", service.ConnectedURL(nc), err),
			"start the server with `nats-server --jetstream`, and enable JetStream for the account")
	}
	p.js = js
	says := fmt.Sprintf("%s, server %s, round trip %s", service.ConnectedURL(nc), nc.ConnectedServerVersion(), rtt.Round(10*time.Microsecond))
	if rtt > slowBus {
		return warn(says+": slow", "run Weir nearer to the server")
	}
	return ok(says)
}

func streams(ctx context.Context, p *patient) []Finding {
	if p.js == nil {
		return []Finding{{Level: Skip, Says: "needs JetStream"}}
	}
	err := weirbus.Check(ctx, p.js, messages.Streams(), messages.Stages())
	if errors.Is(err, weirbus.ErrTopology) {
		return fail(strings.TrimSuffix(err.Error(), "; run `weir migrate`"), "weir migrate")
	}
	if err != nil {
		return broken("check streams", err)
	}
	return fill(ctx, p.js)
}

// fill tells how full the streams are. Those that drop old messages are meant to be full.
func fill(ctx context.Context, js jetstream.JetStream) []Finding {
	var waiting uint64
	var out []Finding
	for _, s := range messages.Streams() {
		stream, err := js.Stream(ctx, s.Name)
		if err != nil {
			return broken("look up stream "+s.Name, err)
		}
		info := stream.CachedInfo()
		if s.Retention == messages.WorkQueue {
			waiting += info.State.Msgs
		}
		if limit := info.Config.MaxBytes; limit > 0 && !s.DropOld && float64(info.State.Bytes) > fullStream*float64(limit) {
			out = append(out, warn(fmt.Sprintf("stream %s is %d %% full: publishers will be refused when it is", s.Name, 100*info.State.Bytes/uint64(limit)),
				"see that every service runs (`weir doctor` line services), or start more of the one whose stream it is")...)
		}
	}
	if len(out) > 0 {
		return out
	}
	return ok(fmt.Sprintf("%d streams up to date, %d messages of work waiting", len(messages.Streams()), waiting))
}

// serviceNames are the services, as they answer discovery, and their binaries.
var serviceNames = [...]string{"ingester", "embedder", "indexer", "retriever"}

// services asks who is there. Every instance answers by itself, so the answers are collected for a while.
func services(ctx context.Context, p *patient) []Finding {
	running, err := discover(ctx, p.nc)
	if err != nil {
		return broken("discover services", err)
	}
	var here, missing []string
	for _, name := range serviceNames {
		if n := running["weir-"+name]; n > 0 {
			here = append(here, fmt.Sprintf("%s %d", name, n))
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ok("running: " + strings.Join(here, ", "))
	}
	return fail(fmt.Sprintf("nobody answers for %s", strings.Join(missing, ", ")),
		fmt.Sprintf("weir up --only %s (or start the binary bin/%s); it says why when it cannot", strings.Join(missing, ","), missing[0]))
}

// discoverFor is how long answers are waited for after the last new one.
const discoverFor = 500 * time.Millisecond

func discover(ctx context.Context, nc *nats.Conn) (map[string]int, error) {
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := nc.PublishRequest("$SRV.PING", inbox, nil); err != nil {
		return nil, err
	}
	found := map[string]int{}
	for {
		wait, cancel := context.WithTimeout(ctx, discoverFor)
		m, err := answers.NextMsgWithContext(wait)
		cancel()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) {
				return found, context.Cause(ctx)
			}
			return nil, err
		}
		var ping struct{ Name string }
		if json.Unmarshal(m.Data, &ping) == nil && slices.Contains(serviceNames[:], strings.TrimPrefix(ping.Name, "weir-")) {
			found[ping.Name]++
		}
	}
}
