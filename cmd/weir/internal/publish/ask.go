package publish

import (
	"context"
	"errors"
	"time"

	"github.com/weir-project/weir/pkg/client"
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

// askFor ends a document whose state can be told for sure. A user who may not look into the docs stream goes
// without the end of some, and is told so once.
func (p *Publisher) askFor(ctx context.Context, s submit) {
	e, over, err := p.kb.Ended(ctx, client.Submitted{
		ID: s.id, DocID: s.item.Submit.DocID, Subspace: s.item.Submit.Subspace, Sequence: s.seq, At: s.began, Version: s.version,
	})
	if errors.Is(err, client.ErrPermission) && !p.blind {
		p.blind = true
		p.cfg.OnNote("no event came for some documents, and this user may not see whether their submits still wait: they stay open")
	}
	if !over {
		return // ask again
	}
	p.track.end(s.id, func(r *Result) {
		r.Status, r.Version, r.Chunks, r.Reused, r.Warnings, r.Error = e.Status, e.Version, e.Chunks, e.Reused, e.Warnings, e.Error
	})
}
