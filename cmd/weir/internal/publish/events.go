package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// Watch calls handle with the events of a knowledge base that are stored from now on, one at a time and in
// order, until stop is called; stop waits for the last call. It returns once the place in the stream is
// fixed: whatever is published afterwards is seen. A kb of "*" means every knowledge base of the tenant.
func Watch(ctx context.Context, js jetstream.JetStream, tenant, kb string, handle func(messages.Event)) (stop func(), err error) {
	stream, err := js.Stream(ctx, messages.StreamEvents)
	if err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{strings.Join([]string{messages.SubjectEvents, tenant, kb, ">"}, ".")},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    stream.CachedInfo().State.LastSeq + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		var e messages.Event
		if json.Unmarshal(m.Data(), &e) == nil { // what is no event ends no submit
			handle(e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	return func() {
		consuming.Stop()
		<-consuming.Closed()
	}, nil
}
