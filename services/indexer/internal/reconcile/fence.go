package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// fence is how far a stream was when a version stood still. What the version has in the stream stands before
// it: once everything of its knowledge base before the fence is gone, so is that, however much has come since.
type fence struct {
	created time.Time // of the stream: one made anew counts from the start
	last    uint64    // sequence
}

// position is where a stream is, seen from one knowledge base.
type position struct {
	fence
	oldest uint64 // sequence of the knowledge base's oldest message, 0 when it has none
}

type kbKey struct{ stage, subject string }

// positions looks streams up once in a pass for each knowledge base.
type positions struct {
	js    jetstream.JetStream
	known map[kbKey]position
}

// passed reports whether nothing of a version can be left in the streams of the stages, named in the order in which work
// passes them: a stage acknowledges a message after what came of it is stored in the next stream, so that one's
// fence is drawn only when the one before is passed. The first call draws the fence and mostly returns false.
func (p *positions) passed(ctx context.Context, s sighting, ref messages.Ref, stages ...string) (bool, error) {
	at, err := p.of(ctx, ref)
	if err != nil {
		return false, err
	}
	for _, stage := range stages {
		f, drawn := s.fences[stage]
		if !drawn || !f.created.Equal(at[stage].created) {
			f = at[stage].fence
			s.fences[stage] = f
		}
		if oldest := at[stage].oldest; oldest > 0 && oldest <= f.last {
			return false, nil
		}
	}
	return true, nil
}

// of looks at the streams in the order in which work passes them, so that nothing slips by between two looks.
func (p *positions) of(ctx context.Context, ref messages.Ref) (map[string]position, error) {
	out := map[string]position{}
	for _, stage := range []string{messages.StageParse, messages.StageEmbed, messages.StageIndex} {
		k := kbKey{stage, messages.WorkSubject(stage, ref.Tenant, ref.KB)}
		at, ok := p.known[k]
		if !ok {
			var err error
			if at, err = p.look(ctx, messages.StageNamed(stage).Stream, k.subject); err != nil {
				return nil, err
			}
			p.known[k] = at
		}
		out[stage] = at
	}
	return out, nil
}

func (p *positions) look(ctx context.Context, name, subject string) (position, error) {
	stream, err := p.js.Stream(ctx, name)
	if err != nil {
		return position{}, fmt.Errorf("look up stream %s: %w", name, err)
	}
	info := stream.CachedInfo()
	at := position{fence: fence{info.Created, info.State.LastSeq}}
	oldest, err := stream.GetMsg(ctx, 0, jetstream.WithGetMsgSubject(subject))
	switch {
	case err == nil:
		at.oldest = oldest.Sequence
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return at, fmt.Errorf("look up the oldest message of %s: %w", subject, err)
	}
	return at, nil
}
