// Package index takes vectors in and makes versions live: the core of the index stage.
package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/indexer/internal/commit"
)

// Store is what the stage needs of the database.
type Store interface {
	StageVectors(ctx context.Context, ref messages.Ref, vectors []pgstore.Vector) error
	ResetStaging(ctx context.Context, ref messages.Ref) (int, error)
}

// Committer makes complete versions live.
type Committer interface {
	Commit(ctx context.Context, generation int64, finished pgstore.Finished, chunks int) (commit.Result, error)
}

// Handler handles index work. Safe for concurrent use.
type Handler struct {
	store  Store
	commit Committer
	now    func() time.Time
}

// New returns a handler.
func New(store Store, committer Committer) *Handler {
	return &Handler{store: store, commit: committer, now: time.Now}
}

// Handle takes the vectors of a message and tries to make its version live. What it returns is to be
// published: the Ready events, or the work of parsing again where staged chunks were lost. Running
// it twice changes nothing and returns the same.
func (h *Handler) Handle(ctx context.Context, body []byte) ([]bus.Message, error) {
	var w messages.IndexWork
	if err := w.UnmarshalBinary(body); err != nil {
		return nil, messages.Invalid("body", "is not index work: "+err.Error())
	}
	if err := w.Ref.Validate(); err != nil {
		return nil, err
	}
	if w.Part < 0 || w.Part >= w.Parts {
		return nil, messages.Invalid("parts", fmt.Sprintf("part %d of %d is none", w.Part, w.Parts))
	}
	vectors, err := decode(w.Vectors)
	if err != nil {
		return nil, err
	}
	if w.Parts == 1 { // they are all there will be: no need to set them down first
		return h.finish(ctx, w.Ref, vectors, len(vectors))
	}
	if err := h.store.StageVectors(ctx, w.Ref, vectors); err != nil {
		return nil, err
	}
	return h.finish(ctx, w.Ref, nil, len(vectors)*w.Parts)
}

// Finish makes a version live if everything of it is staged, and returns what is to be published.
func (h *Handler) Finish(ctx context.Context, ref messages.Ref, chunks int) ([]bus.Message, error) {
	return h.finish(ctx, ref, nil, chunks)
}

func (h *Handler) finish(ctx context.Context, ref messages.Ref, vectors []pgstore.Vector, chunks int) ([]bus.Message, error) {
	candidate := pgstore.Candidate{DocKey: ref.DocKey, Version: ref.Version, Build: ref.Build}
	res, err := h.commit.Commit(ctx, ref.Generation, pgstore.Finished{Candidate: candidate, Vectors: vectors}, chunks)
	if err != nil {
		return nil, err
	}
	if res.Lost {
		return h.Reparse(ctx, ref)
	}
	return ReadyEvents(ref, res.Ready, h.now())
}

// Reparse returns the work that builds a version's staged chunks anew.
func (h *Handler) Reparse(ctx context.Context, ref messages.Ref) ([]bus.Message, error) {
	run, err := h.store.ResetStaging(ctx, ref)
	if err != nil {
		return nil, err
	}
	ref.Run = run
	msg, err := bus.Work(messages.StageParse, messages.TypeParse, ref, 0, messages.ParseWork{Ref: ref})
	return []bus.Message{msg}, err
}

// ReadyEvents tells every submit that a live version answers.
func ReadyEvents(ref messages.Ref, ready []pgstore.Ready, at time.Time) ([]bus.Message, error) {
	out := make([]bus.Message, 0, len(ready))
	for _, r := range ready {
		msg, err := bus.Event(messages.Event{
			Tenant: ref.Tenant, KB: ref.KB, KBID: ref.KBID, Subspace: ref.Subspace, DocID: ref.DocID, Version: ref.Version,
			Status: messages.StatusReady, SubmitID: r.SubmitID, Chunks: r.Chunks, Reused: r.Reused, Tokens: r.Tokens, Reactivated: r.Reactivated,
			Warnings: r.Warnings, At: at.UTC(),
		}, r.Source)
		if err != nil {
			return nil, err
		}
		out = append(out, msg)
	}
	return out, nil
}

// maxHalf is the largest number that vectors are stored with.
const maxHalf = 65504

func decode(in []messages.IndexVector) ([]pgstore.Vector, error) {
	out := make([]pgstore.Vector, len(in))
	for i, v := range in {
		field := fmt.Sprintf("vectors[%d]", i)
		if len(v.Vector) == 0 || len(v.Vector)%4 != 0 || v.Ordinal < 0 {
			return nil, messages.Invalid(field, "is no float32 vector of a chunk")
		}
		values := make([]float32, len(v.Vector)/4)
		for j := range values {
			values[j] = math.Float32frombits(binary.LittleEndian.Uint32(v.Vector[4*j:]))
			if f := float64(values[j]); math.IsNaN(f) || math.Abs(f) > maxHalf {
				return nil, messages.Invalid(field, "holds a value that is not finite in half precision")
			}
		}
		out[i] = pgstore.Vector{Ordinal: v.Ordinal, Values: values}
	}
	return out, nil
}
