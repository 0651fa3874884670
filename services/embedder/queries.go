package embedder

import (
	"context"
	"encoding/json"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
)

// host is what the service does on the bus.
func (s *Service) host() bus.Host {
	return bus.Host{
		Runners: []*bus.Runner{s.runner}, Requests: s.deps.Requests, DrainTimeout: s.cfg.DrainTimeout, Ready: s.deps.Ready,
		Info:    bus.ServiceInfo{Name: "weir-embedder", Version: messages.Version, Description: "vectors of query texts"},
		Options: bus.ServiceOptions{MaxConcurrent: s.cfg.Queries, Telemetry: s.telemetry()},
		Endpoints: []bus.Endpoint{{
			Name: "embed", Subject: messages.SubjectEmbed, Priority: true, Handler: s.answer,
			Metadata: messages.EndpointMetadata(messages.EmbedRequest{}, messages.EmbedReply{}),
		}},
	}
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
