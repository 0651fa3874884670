package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	weirbus "github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
)

// embeddingServer embeds a word at the server itself.
func embeddingServer(ctx context.Context, p *patient) []Finding {
	e := p.Embedding
	if e.BaseURL == "" {
		return []Finding{{Level: Skip, Says: "the address of the embedding server is not known here: set EMBEDDING_BASE_URL"}}
	}
	client, err := embedding.NewClient(embedding.ClientConfig{BaseURL: e.BaseURL.Reveal(), APIKey: e.Key, Model: e.Model})
	if err != nil {
		return fail(err.Error(), "set EMBEDDING_BASE_URL to the address up to /v1")
	}
	began := time.Now()
	dims, err := client.Probe(ctx)
	if err != nil {
		return fail(fmt.Sprintf("%s does not embed with model %s: %v", e.BaseURL, e.Model, err),
			"`weir status` tells whether the local server runs; for another one check EMBEDDING_BASE_URL, EMBEDDING_API_KEY and --model")
	}
	return ok(fmt.Sprintf("%s, model %s, %d dimensions, %d ms", e.BaseURL, e.Model, dims, time.Since(began).Milliseconds()))
}

// spaces embeds a word in the space of every live generation, the way queries do.
func spaces(ctx context.Context, p *patient) []Finding {
	if p.nc == nil {
		return []Finding{{Level: Skip, Says: "needs the bus"}}
	}
	rows, err := rowsOf(ctx, p.pool, liveSpaces)
	if err != nil {
		return broken("list embedding spaces", err)
	}
	var bad []Finding
	for _, r := range rows {
		var space messages.Space
		if err := json.Unmarshal([]byte(r[1]), &space); err != nil {
			return broken("read the embedding space of "+r[0], err)
		}
		bad = append(bad, p.tryOut(ctx, r[0], space)...)
	}
	if len(bad) > 0 {
		return bad
	}
	return ok(fmt.Sprintf("%d spaces can be embedded", len(rows)))
}

func (p *patient) tryOut(ctx context.Context, kbs string, space messages.Space) []Finding {
	var reply messages.EmbedReply
	err := weirbus.Client{NC: p.nc}.Call(ctx, messages.SubjectEmbed, nil, messages.EmbedRequest{Space: space, Texts: []string{"weir doctor"}}, &reply)
	name := fmt.Sprintf("model %s with %d dimensions (knowledge bases %s)", space.Model, space.Dims, kbs)
	e, refused := messages.AsError(err)
	switch {
	case refused && e.Code == messages.CodeDimensionMismatch:
		return fail(fmt.Sprintf("%s: the server now answers with other dimensions: %s", name, e.Message),
			"serve the model the knowledge base was made with, or create a new knowledge base and publish again")
	case err != nil:
		return fail(fmt.Sprintf("%s cannot be embedded: %v", name, err), "start the embedder (`weir up --only embedder`) with a server that has this model")
	case len(reply.Vectors) != 1 || len(reply.Vectors[0]) != 4*space.Dims:
		return fail(name+": the embedder answers with a vector of another length", "update the embedder")
	}
	return nil
}
