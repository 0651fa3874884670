// Package split takes the lines of a file of JSON lines in, each as a document of its own.
//
// It is the parse stage of such a file. The file is read from the database line by line, so that it never is in memory
// whole. Lines are recognised again by the key and version of their file and their number, and a batch of them is
// published before the next is taken in. So a run that ends anywhere is repaired by running again from the first line.
package split

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/intake"
)

// Store is what splitting needs of the database.
type Store interface {
	BeginSplit(ctx context.Context, ref messages.Ref) (pgstore.Split, error)
	OpenBlob(ctx context.Context, kbID int64, b pgstore.Blob) io.Reader
	KeepLines(ctx context.Context, parent messages.Ref, subspaces, docIDs []string) error
	CountLines(ctx context.Context, ref messages.Ref, lines messages.Lines) error
	LinesTaken(ctx context.Context, ref messages.Ref, lines messages.Lines, removeOthers bool) error
}

// Taker takes lines in.
type Taker interface {
	TakeLines(ctx context.Context, p intake.Parent, lines []intake.Line) ([]intake.LineVerdict, error)
}

// Publisher stores messages at once.
type Publisher interface {
	PublishAck(ctx context.Context, msgs ...bus.Message) ([]bus.Ack, error)
}

// Bounds. Those of a batch are of a transaction; a line may be larger than a batch, which it then has for itself.
const (
	MaxLineBytes = 8 << 20
	batchLines   = 64
	batchBytes   = 2 << 20
	parallel     = 2 // files
	tellEvery    = time.Second
)

// Splitter splits files. Safe for concurrent use.
type Splitter struct {
	store   Store
	take    Taker
	publish Publisher
	slots   *semaphore.Weighted
	now     func() time.Time
}

// New returns a splitter.
func New(store Store, take Taker, publish Publisher) *Splitter {
	return &Splitter{store: store, take: take, publish: publish, slots: semaphore.NewWeighted(parallel), now: time.Now}
}

// Split takes all lines of a version in. Errors that belong to the file are *messages.Error: it has no line, or all are
// refused. ErrStale when there is nothing left to do.
func (s *Splitter) Split(ctx context.Context, ref messages.Ref, blob pgstore.Blob) error {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait to be split: %w", err)
	}
	defer s.slots.Release(1)
	begun, err := s.store.BeginSplit(ctx, ref)
	if err != nil {
		return err
	}
	r := &run{Splitter: s, parent: intake.Parent{Ref: ref, Split: begun}, told: s.now()}
	if err := r.all(ctx, newLines(s.store.OpenBlob(ctx, ref.KBID, blob), MaxLineBytes)); err != nil {
		return fmt.Errorf("split %s: %w", ref.DocID, err)
	}
	if r.lines.Failed == r.lines.Total {
		if err := s.store.CountLines(ctx, ref, r.lines); err != nil {
			return err
		}
		return r.lines.Failure()
	}
	return s.store.LinesTaken(ctx, ref, r.lines, !r.nameless)
}

// run is the splitting of one file.
type run struct {
	*Splitter
	parent   intake.Parent
	lines    messages.Lines
	nameless bool // a refused line did not tell which document it was to be
	told     time.Time

	batch []intake.Line
	bytes int
}

func (r *run) all(ctx context.Context, in *lines) error {
	for {
		line, tooLong, err := in.next()
		if err == io.EOF { //nolint:errorlint // the contract of next
			return r.flush(ctx)
		}
		if err != nil {
			return err
		}
		if len(r.batch) == batchLines || len(r.batch) > 0 && r.bytes+len(line.Text) > batchBytes || tooLong {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		if tooLong {
			r.lines.Total++
			r.refuse(line.Number, "", &messages.Error{
				Code: messages.CodeDocumentTooLarge, Field: "body", Message: fmt.Sprintf("a line may have at most %d bytes", MaxLineBytes),
			})
			continue
		}
		r.batch, r.bytes = append(r.batch, line), r.bytes+len(line.Text)
	}
}

// flush takes a batch in and publishes what follows of it.
func (r *run) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	verdicts, err := r.take.TakeLines(ctx, r.parent, r.batch)
	if err != nil {
		return err
	}
	var msgs []bus.Message
	var subspaces, docs []string // of documents that stay as they are
	for i, v := range verdicts {
		msgs = append(msgs, v.Messages...)
		r.lines.Total++
		if v.Err == nil {
			r.count(v.Outcome)
			continue
		}
		r.refuse(r.batch[i].Number, v.DocID, v.Err)
		if v.DocID != "" {
			subspaces, docs = append(subspaces, v.Subspace), append(docs, v.DocID)
		}
	}
	if len(msgs) > 0 {
		if _, err := r.publish.PublishAck(ctx, msgs...); err != nil {
			return err
		}
	}
	if len(docs) > 0 {
		if err := r.store.KeepLines(ctx, r.parent.Ref, subspaces, docs); err != nil {
			return err
		}
	}
	r.batch, r.bytes = r.batch[:0], 0
	return r.tell(ctx)
}

func (r *run) count(o pgstore.Outcome) {
	switch o {
	case pgstore.Unchanged, pgstore.MetadataOnly:
		r.lines.Unchanged++
	case pgstore.Superseded:
		r.lines.Superseded++
	default:
		r.lines.Accepted++
	}
}

func (r *run) refuse(line int, docID string, err *messages.Error) {
	r.lines.Fail(messages.LineError{Line: line, DocID: docID, Error: *err})
	r.nameless = r.nameless || docID == ""
}

// tell writes down how far it came, now and then.
func (r *run) tell(ctx context.Context) error {
	if now := r.now(); now.Sub(r.told) >= tellEvery {
		r.told = now
		return r.store.CountLines(ctx, r.parent.Ref, r.lines)
	}
	return nil
}
