package publish

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// askAtOnce is how many documents are asked for in a round.
const askAtOnce = 50

// ask looks after documents whose events do not come, until ctx ends.
func (p *Publisher) ask(ctx context.Context) {
	tick := time.NewTicker(max(p.cfg.Silence/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range p.track.silent(time.Now().Add(-p.cfg.Silence), askAtOnce) {
			p.askFor(ctx, s)
		}
	}
}

// askFor ends a document whose state can be told for sure: its submit has left the docs stream, so what
// documents.get says is at least as new.
func (p *Publisher) askFor(ctx context.Context, s submit) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !p.taken(ctx, s.seq) {
		return
	}
	var info messages.DocumentInfo
	err := p.rpc.Call(ctx, messages.RPCSubject(p.cfg.Tenant, p.cfg.KB, messages.OpDocGet), nil,
		messages.DocumentRef{DocID: s.item.Submit.DocID, Subspace: s.item.Submit.Subspace}, &info)
	if e, ok := messages.AsError(err); ok && (e.Code == messages.CodeDocumentNotFound || e.Code == messages.CodeKBNotFound) {
		p.fail(s.id, messages.Errorf(e.Code, "the submit was refused and its event is lost; `weir dlq list` says why"))
		return
	}
	if err != nil || !info.Status.Terminal() {
		return // ask again
	}
	p.track.end(s.id, func(r *Result) {
		r.Status, r.Version, r.Chunks, r.Reused = info.Status, info.Version, info.Chunks, info.Reused
		r.Warnings, r.Error = info.Warnings, info.Error
	})
}

// taken reports that a message is no longer in the docs stream, which drops what is acknowledged.
func (p *Publisher) taken(ctx context.Context, seq uint64) bool {
	stream, err := p.js.Stream(ctx, messages.StreamDocs)
	if err != nil {
		return false
	}
	_, err = stream.GetMsg(ctx, seq)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}
