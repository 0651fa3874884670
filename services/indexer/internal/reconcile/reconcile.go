// Package reconcile finds versions whose work was lost with its messages and publishes what is missing.
// Postgres is the truth: wiping every stream costs time, never a document.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Store is what reconciling needs of the database.
type Store interface {
	OpenVersions(ctx context.Context, after int64, age time.Duration, limit int) ([]pgstore.OpenVersion, error)
	OpenBuilds(ctx context.Context, after int64, age time.Duration, limit int) ([]pgstore.OpenVersion, error)
	EmbedWork(ctx context.Context, ref messages.Ref) ([]messages.EmbedWork, error)
	RaiseRun(ctx context.Context, ref messages.Ref) (int, error)
}

// Finisher makes a complete version live, or builds lost staged chunks anew.
type Finisher interface {
	Finish(ctx context.Context, ref messages.Ref, chunks int) ([]bus.Message, error)
}

// Publisher stores messages and tells where.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Reconciler remembers how far each open version was when it looked last. Run it in one goroutine.
type Reconciler struct {
	store   Store
	finish  Finisher
	publish Publisher
	js      jetstream.JetStream
	log     *slog.Logger
	grace   time.Duration
	seen    map[key]sighting
}

// key names a version, and for a build of a job the generation it is built in.
type key struct{ doc, version, build int64 }

func keyOf(ref messages.Ref) key {
	k := key{doc: ref.DocKey, version: ref.Version}
	if ref.Build {
		k.build = ref.Generation
	}
	return k
}

// sighting is how far a version was, and since when; and how far the streams of stages were then.
type sighting struct {
	progress string
	since    time.Time
	fences   map[string]fence
}

// New returns a reconciler that takes a version for stuck when it made no progress for grace and no
// message of its is left.
func New(store Store, finish Finisher, publish Publisher, js jetstream.JetStream, log *slog.Logger, grace time.Duration) *Reconciler {
	return &Reconciler{store: store, finish: finish, publish: publish, js: js, log: log, grace: grace, seen: map[key]sighting{}}
}

const pageSize = 500

// Pass looks at every open version and build once. One that cannot be helped now does not keep the others from
// it; the errors are joined.
func (r *Reconciler) Pass(ctx context.Context, now time.Time) error {
	open, at := map[key]sighting{}, &positions{js: r.js, known: map[kbKey]position{}}
	var problems []error
	for _, list := range []lister{r.store.OpenVersions, r.store.OpenBuilds} {
		found, err := r.lookAt(ctx, list, now, open, at)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	r.seen = open
	return errors.Join(problems...)
}

type lister func(ctx context.Context, after int64, age time.Duration, limit int) ([]pgstore.OpenVersion, error)

func (r *Reconciler) lookAt(ctx context.Context, list lister, now time.Time, open map[key]sighting, at *positions) (problems []error, err error) {
	for after := int64(0); ; {
		page, err := list(ctx, after, r.grace/2, pageSize)
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			if err := guard.Call(func() error { return r.look(ctx, v, now, open, at) }); err != nil && !errors.Is(err, pgstore.ErrStale) {
				problems = append(problems, fmt.Errorf("reconcile %s: %w", v.Ref.DocID, err))
			}
			after = v.Ref.DocKey
		}
		if len(page) < pageSize || ctx.Err() != nil {
			return problems, nil
		}
	}
}

// look helps a version that stood still for the grace time, and starts its time anew.
func (r *Reconciler) look(ctx context.Context, v pgstore.OpenVersion, now time.Time, open map[key]sighting, at *positions) error {
	k := keyOf(v.Ref)
	progress := fmt.Sprint(v.Status, v.Ref.Run, v.Staged, v.Vectors)
	was, known := r.seen[k]
	if !known || was.progress != progress {
		was = sighting{progress: progress, since: now, fences: map[string]fence{}}
	}
	open[k] = was
	if now.Sub(was.since) < r.grace {
		return nil
	}
	was.since = now
	open[k] = was
	return r.help(ctx, v, was, at)
}

func (r *Reconciler) help(ctx context.Context, v pgstore.OpenVersion, s sighting, at *positions) error {
	begun := v.Status != messages.StatusPending // else parsing it is what begins it, whatever is staged from a run before
	if begun && (v.Complete() || v.Lost()) {
		r.log.Info("finishing a version whose message was lost", "kb", v.Ref.KB, "doc", v.Ref.DocID, "version", v.Ref.Version)
		msgs, err := r.finish.Finish(ctx, v.Ref, v.Staged)
		if err != nil {
			return err
		}
		_, err = r.publish.PublishAck(ctx, msgs...)
		return err
	}
	if !begun || v.Expected == nil {
		lost, err := at.passed(ctx, s, v.Ref, messages.StageParse)
		if err != nil || !lost {
			return err
		}
		return r.again(ctx, v.Ref, messages.StreamParse, s, func(ref messages.Ref) ([]bus.Message, error) {
			msg, err := bus.Work(messages.StageParse, messages.TypeParse, ref, 0, messages.ParseWork{Ref: ref})
			return []bus.Message{msg}, err
		})
	}
	lost, err := at.passed(ctx, s, v.Ref, messages.StageEmbed, messages.StageIndex)
	if err != nil || !lost {
		return err
	}
	return r.again(ctx, v.Ref, messages.StreamEmbed, s, func(ref messages.Ref) ([]bus.Message, error) {
		return r.embedWork(ctx, ref)
	})
}

// again publishes work that is lost under its old ids. The stream tells whether it knows them: a new message
// was missing and is there now; a known one that is gone was lost on its way through a stage, and is
// published under new ids.
func (r *Reconciler) again(ctx context.Context, ref messages.Ref, stream string, s sighting, work func(messages.Ref) ([]bus.Message, error)) error {
	msgs, err := work(ref)
	if err != nil || len(msgs) == 0 {
		return err
	}
	acks, err := r.publish.PublishAck(ctx, msgs...)
	if err != nil {
		return err
	}
	stored, err := r.anyStored(ctx, stream, acks)
	if err != nil || stored {
		clear(s.fences) // they were drawn before this message
		return err
	}
	if ref.Run, err = r.store.RaiseRun(ctx, ref); err != nil {
		return err
	}
	if msgs, err = work(ref); err != nil {
		return err
	}
	r.log.Info("publishing lost work again", "kb", ref.KB, "doc", ref.DocID, "version", ref.Version, "stream", stream, "run", ref.Run, "messages", len(msgs))
	_, err = r.publish.PublishAck(ctx, msgs...)
	return err
}

func (r *Reconciler) anyStored(ctx context.Context, stream string, acks []bus.Ack) (bool, error) {
	s, err := r.js.Stream(ctx, stream)
	if err != nil {
		return false, fmt.Errorf("look up stream %s: %w", stream, err)
	}
	for _, ack := range acks {
		if !ack.Duplicate {
			return true, nil
		}
		_, err := s.GetMsg(ctx, ack.Sequence)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, fmt.Errorf("look up message %d of %s: %w", ack.Sequence, stream, err)
		}
	}
	return false, nil
}

// embedWork builds the messages for the chunks whose vectors are missing.
func (r *Reconciler) embedWork(ctx context.Context, ref messages.Ref) ([]bus.Message, error) {
	works, err := r.store.EmbedWork(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := make([]bus.Message, len(works))
	for i, w := range works {
		if out[i], err = bus.Work(messages.StageEmbed, messages.TypeEmbed, ref, w.Part, w); err != nil {
			return nil, err
		}
	}
	return out, nil
}
