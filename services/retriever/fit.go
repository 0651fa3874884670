package retriever

import (
	"encoding/json"
	"fmt"

	"github.com/weir-project/weir/pkg/messages"
)

// fit cuts a reply at the border of a result so that its data has at most room bytes. A first result
// that alone is larger is RESPONSE_TOO_LARGE.
func fit(reply *messages.RetrieveReply, room int) error {
	if surely(reply) <= room {
		return nil
	}
	frame := *reply
	frame.Results, frame.Truncated = nil, true
	used, err := size(&frame)
	if err != nil {
		return err
	}
	for i := range reply.Results {
		n, err := size(&reply.Results[i])
		if err != nil {
			return err
		}
		if used += n + 1; used <= room {
			continue
		}
		if i == 0 {
			return messages.Errorf(messages.CodeResponseTooLarge, "the first result has %d bytes, at most %d fit a reply", n, room)
		}
		reply.Results, reply.Truncated = reply.Results[:i], true
		return nil
	}
	return nil
}

// surely is a bound of the encoded size that needs no encoding: a byte of text takes at most six.
func surely(reply *messages.RetrieveReply) int {
	n := 4096
	for i := range reply.Results {
		c := &reply.Results[i]
		text := len(c.DocID) + len(c.OSSKey) + len(c.Content) + len(c.Subspace) + len(c.Metadata) + len(c.Title)
		for _, h := range c.HeadingPath {
			text += len(h) + 1
		}
		n += 1024 + 6*text
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
