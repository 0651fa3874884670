package retriever

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/retriever/internal/engine"
)

// fit cuts an answer at the border of a result so that its data has at most room bytes. A first result
// that alone is larger is RESPONSE_TOO_LARGE.
func fit(a *engine.Answer, room int) error {
	if surely(a.Reply) <= room {
		return nil
	}
	used, err := frame(a)
	if err != nil {
		return err
	}
	for i := range a.Reply.Results {
		n, err := size(&a.Reply.Results[i])
		if err != nil {
			return err
		}
		if used += n + 1; used <= room {
			continue
		}
		if i == 0 {
			return messages.Errorf(messages.CodeResponseTooLarge, "the first result has %d bytes, at most %d fit a reply", n, room)
		}
		a.Cut(i)
		return nil
	}
	return nil
}

// frame is the size of everything but the results.
func frame(a *engine.Answer) (int, error) {
	empty := *a.Reply
	empty.Results, empty.Truncated, empty.NextCursor = nil, true, ""
	n, err := size(&empty)
	return n + a.CursorBytes(), err
}

// fitBatch cuts the answers of a batch so that they fit a reply together: what is small stays whole, and the
// others share the rest.
func fitBatch(answers []*engine.Answer, room int) (*messages.BatchReply, error) {
	sizes := make([]int, len(answers))
	order := make([]int, len(answers))
	for i, a := range answers {
		n, err := whole(a)
		if err != nil {
			return nil, err
		}
		sizes[i], order[i] = n, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	out := &messages.BatchReply{Results: make([]messages.RetrieveReply, len(answers))}
	for done, i := range order {
		share := room / (len(order) - done)
		if err := fit(answers[i], share); err != nil {
			return nil, engine.InBatch(i, err)
		}
		room -= min(share, sizes[i])
		out.Results[i] = *answers[i].Reply
	}
	return out, nil
}

// whole is a bound of the size of an answer that is not cut.
func whole(a *engine.Answer) (int, error) {
	n, err := frame(a)
	if err != nil {
		return 0, err
	}
	for i := range a.Reply.Results {
		r, err := size(&a.Reply.Results[i])
		if err != nil {
			return 0, err
		}
		n += r + 1
	}
	return n, nil
}

// surely is a bound of the encoded size that needs no encoding: a byte of text takes at most six.
func surely(reply *messages.RetrieveReply) int {
	n := 4096 + len(reply.NextCursor)
	for i := range reply.Results {
		c := &reply.Results[i]
		text := len(c.DocID) + len(c.OSSKey) + len(c.Content) + len(c.Subspace) + len(c.Metadata) + len(c.Title)
		for _, h := range c.HeadingPath {
			text += len(h) + 1
		}
		for _, h := range c.Highlights {
			text += len(h.Text) + 16 + 10*len(h.Marks)
		}
		for _, s := range c.Sources {
			text += len(s.KB)*2 + len(s.Subspace) + len(s.DocID) + 24
		}
		n += 1024 + 6*text + 16*len(c.Vector)
	}
	return n
}

func size(v any) (int, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("encode reply: %w", err)
	}
	return len(data), nil
}
