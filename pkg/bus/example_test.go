package bus_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// A stage takes messages, works on them and passes messages on to the next stage.
func Example() {
	dir, err := os.MkdirTemp("", "weir-bus")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		panic(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	nc, err := nats.Connect(srv.ClientURL(), nats.MaxReconnects(-1))
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	if _, err := bus.Provision(ctx, js, messages.Streams(), messages.Stages(), bus.Settings{}); err != nil {
		panic(err)
	}
	pub, err := bus.NewPublisher(nc, bus.PublisherConfig{})
	if err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(ctx)
	handle := func(_ context.Context, d bus.Delivery) ([]bus.Message, error) {
		fmt.Printf("%s/%s: %s\n", d.Tenant, d.KB, d.Body)
		stop() // after the first message, for the example
		return []bus.Message{{
			Subject: messages.WorkSubject(messages.StageEmbed, d.Tenant, d.KB), ID: d.ID + "/embed", Body: []byte("next"),
		}}, nil
	}
	runner, err := bus.NewRunner(js, pub, handle, bus.SubscriberConfig{Stage: messages.StageNamed(messages.StageParse), Workers: 2})
	if err != nil {
		panic(err)
	}
	_, err = pub.PublishAck(ctx, bus.Message{
		Subject: messages.WorkSubject(messages.StageParse, "acme", "manuals"), ID: "acme/1/parse", Body: []byte("hello"),
	})
	if err != nil {
		panic(err)
	}
	if err := runner.Run(ctx); err != nil {
		panic(err)
	}
	// Output: acme/manuals: hello
}
