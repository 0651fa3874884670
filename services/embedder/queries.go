package embedder

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// serveQueries answers requests for query vectors, once work is served too, until ctx is done, and then
// those under way.
func (s *Service) serveQueries(ctx context.Context) error {
	select {
	case <-s.runner.Running():
	case <-ctx.Done():
		return nil
	}
	rpc, err := bus.NewService(s.deps.Requests, bus.ServiceInfo{
		Name: "weir-embedder", Version: "1.0.0", Description: "vectors of query texts",
	}, bus.ServiceOptions{MaxConcurrent: s.cfg.Queries, Telemetry: s.telemetry()})
	if err != nil {
		return fmt.Errorf("serve query vectors: %w", err)
	}
	err = rpc.AddEndpoint(bus.Endpoint{
		Name: "embed", Subject: messages.SubjectEmbed, QueueGroup: "weir-embedder", Priority: true, Handler: s.answer,
		Metadata: messages.EndpointMetadata(messages.EmbedRequest{}, messages.EmbedReply{}),
	})
	if err == nil {
		if s.deps.Ready != nil {
			s.deps.Ready()
		}
		<-ctx.Done()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	if stopErr := rpc.Stop(drain); err == nil && stopErr != nil {
		err = stopErr
	}
	if err != nil {
		return fmt.Errorf("serve query vectors: %w", err)
	}
	return nil
}

// answer is the endpoint's handler.
func (s *Service) answer(ctx context.Context, r bus.Request) (any, error) {
	var in messages.EmbedRequest
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return nil, messages.Invalid("body", "is not an embed request: "+err.Error())
	}
	out, err := s.query.Handle(ctx, in)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) telemetry() bus.Telemetry {
	return bus.Telemetry{Log: s.deps.Logger, Tracer: s.deps.Tracer, Meter: s.deps.Meter}
}
