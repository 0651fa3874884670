package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// Provision creates or updates streams and the consumers of stages, and returns one line for each
// change; an empty list means that all was as it should be. Sizes, ages, replicas and ack waits that an
// operator chose stay, unless set names others. One component runs it at start (`weir migrate`, `weir
// up`), never a subscriber. Running it twice, or at once from two places, is harmless.
func Provision(ctx context.Context, js jetstream.JetStream, streams []messages.Stream, stages []messages.Stage, set Settings) ([]string, error) {
	var changes []string
	for _, s := range streams {
		change, err := provisionStream(ctx, js, s, set)
		if err != nil {
			return changes, fmt.Errorf("provision stream %s: %w", s.Name, err)
		}
		changes = append(changes, change...)
	}
	for _, st := range stages {
		for lane := range st.Lanes {
			change, err := provisionConsumer(ctx, js, st, lane, set)
			if err != nil {
				return changes, fmt.Errorf("provision consumer %s of %s: %w", st.Durable(lane), st.Stream, err)
			}
			changes = append(changes, change...)
		}
	}
	return changes, nil
}

func provisionStream(ctx context.Context, js jetstream.JetStream, s messages.Stream, set Settings) ([]string, error) {
	stream, err := js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, streamConfig(jetstream.StreamConfig{}, s, set))
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return created("stream "+s.Name, err)
		}
		stream, err = js.Stream(ctx, s.Name) // somebody else was faster
	}
	if err != nil {
		return nil, err
	}
	got := stream.CachedInfo().Config
	want := streamConfig(got, s, set)
	diff := diffStream(got, want)
	if len(diff) == 0 {
		return nil, nil
	}
	if _, err := js.UpdateStream(ctx, want); err != nil {
		return nil, fmt.Errorf("change %s: %w", join(diff), err)
	}
	return []string{fmt.Sprintf("stream %s: %s", s.Name, join(diff))}, nil
}

func provisionConsumer(ctx context.Context, js jetstream.JetStream, st messages.Stage, lane int, set Settings) ([]string, error) {
	name := st.Durable(lane)
	c, err := js.Consumer(ctx, st.Stream, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = js.CreateOrUpdateConsumer(ctx, st.Stream, consumerConfig(jetstream.ConsumerConfig{}, st, lane, set))
		return created(fmt.Sprintf("consumer %s of %s", name, st.Stream), err)
	}
	if err != nil {
		return nil, err
	}
	got := c.CachedInfo().Config
	want := consumerConfig(got, st, lane, set)
	diff := diffConsumer(got, want)
	if len(diff) == 0 {
		return nil, nil
	}
	if _, err := js.UpdateConsumer(ctx, st.Stream, want); err != nil {
		return nil, fmt.Errorf("change %s: %w", join(diff), err)
	}
	return []string{fmt.Sprintf("consumer %s of %s: %s", name, st.Stream, join(diff))}, nil
}

func created(what string, err error) ([]string, error) {
	var api *jetstream.APIError
	if errors.As(err, &api) && fullStream(api) {
		return nil, fmt.Errorf("create: the server cannot reserve the stream's size; free disk, raise its JetStream limits or make streams smaller (weir migrate --stream-max-bytes): %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return []string{what + ": created"}, nil
}

func join(diff []difference) string {
	parts := make([]string, len(diff))
	for i, d := range diff {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// Check tells whether the streams and consumers are what this version needs. Sizes, ages, replicas
// and ack waits are the operator's and not compared. The error is an [ErrTopology] that names the
// first one that is missing or older, and the remedy.
func Check(ctx context.Context, js jetstream.JetStream, streams []messages.Stream, stages []messages.Stage) error {
	var set Settings
	for _, s := range streams {
		stream, err := js.Stream(ctx, s.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return outdated("stream "+s.Name, "is missing")
		}
		if err != nil {
			return fmt.Errorf("look up stream %s: %w", s.Name, err)
		}
		got := stream.CachedInfo().Config
		if diff := essential(diffStream(got, streamConfig(got, s, set))); len(diff) > 0 {
			return outdated("stream "+s.Name, "is out of date ("+join(diff)+")")
		}
	}
	for _, st := range stages {
		if err := checkConsumers(ctx, js, st, set); err != nil {
			return err
		}
	}
	return nil
}

func checkConsumers(ctx context.Context, js jetstream.JetStream, st messages.Stage, set Settings) error {
	for lane := range st.Lanes {
		name := fmt.Sprintf("consumer %s of stream %s", st.Durable(lane), st.Stream)
		c, err := js.Consumer(ctx, st.Stream, st.Durable(lane))
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return outdated(name, "is missing")
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", name, err)
		}
		got := c.CachedInfo().Config
		if diff := essential(diffConsumer(got, consumerConfig(got, st, lane, set))); len(diff) > 0 {
			return outdated(name, "is out of date ("+join(diff)+")")
		}
	}
	return nil
}

func essential(diff []difference) []difference {
	var out []difference
	for _, d := range diff {
		if d.essential {
			out = append(out, d)
		}
	}
	return out
}

func outdated(what, how string) error {
	return fmt.Errorf("%w: %s %s; run `weir migrate`", ErrTopology, what, how)
}
