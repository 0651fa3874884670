package publish

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
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

// clockSlack is how much the server's clock may be behind ours.
const clockSlack = 2 * time.Second

// askFor ends a document whose state can be told for sure. Where no event named its version, what
// documents_get says counts when the newest version was submitted after we sent ours, or when our submit has
// left the docs stream. A user who may not look there goes without the latter.
func (p *Publisher) askFor(ctx context.Context, s submit) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var info messages.DocumentInfo
	err := p.rpc.Call(ctx, messages.RPCSubject(p.cfg.Tenant, p.cfg.KB, messages.OpDocGet), nil,
		messages.DocumentRef{DocID: s.item.Submit.DocID, Subspace: s.item.Submit.Subspace}, &info)
	e, coded := messages.AsError(err)
	switch {
	case coded && (e.Code == messages.CodeDocumentNotFound || e.Code == messages.CodeKBNotFound):
		p.gone(ctx, s, e.Code)
	case err != nil || !info.Status.Terminal():
		// ask again
	case s.version > info.Version:
		// the answer is of an older state than the event
	case s.version > 0 && s.version < info.Version:
		p.track.end(s.id, func(r *Result) { r.Status, r.Version = messages.StatusSuperseded, info.Version })
	case s.version > 0 || info.SubmittedAt.After(s.began.Add(-clockSlack)) || p.taken(ctx, s.seq):
		p.track.end(s.id, func(r *Result) {
			r.Status, r.Version, r.Chunks, r.Reused = info.Status, info.Version, info.Chunks, info.Reused
			r.Warnings, r.Error = info.Warnings, info.Error
		})
	}
}

// gone ends a document that is not there: it was, and is deleted, or its submit was refused.
func (p *Publisher) gone(ctx context.Context, s submit, code messages.Code) {
	switch {
	case s.version > 0:
		p.track.end(s.id, func(r *Result) { r.Status, r.Version = messages.StatusDeleted, s.version })
	case p.taken(ctx, s.seq):
		p.fail(s.id, messages.Errorf(code, "the submit was refused and its event is lost; `weir dlq list` says why"))
	}
}

// lookTimeout bounds a look at the docs stream: a refused one is never answered.
const lookTimeout = 3 * time.Second

// taken reports that a message is no longer in the docs stream, which drops what is acknowledged.
func (p *Publisher) taken(ctx context.Context, seq uint64) bool {
	if p.blind {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stream, err := p.js.Stream(ctx, messages.StreamDocs)
	if err == nil {
		_, err = stream.GetMsg(ctx, seq)
	}
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(p.nc.LastError(), nats.ErrPermissionViolation) {
		p.blind = true
		p.cfg.OnNote("no event came for some documents, and this user may not see whether their submits still wait: they stay open")
	}
	return errors.Is(err, jetstream.ErrMsgNotFound)
}
