package parse

import (
	"context"

	"github.com/weir-project/weir/pkg/messages"
)

// child reads a document inside another one into the same builder. Its blocks have its name as their
// place; title, pages and charset of the outer document stay.
func (s source) child(ctx context.Context, b *builder, a attachment) error {
	if s.depth >= attachDepth {
		return limitError("nesting of attachments", attachDepth, "levels")
	}
	in := Input{Data: a.data, ContentType: a.media, Name: a.name}
	if len(a.data) == 0 {
		return emptyError()
	}
	found, err := s.parser.formats.detect(in)
	if e, ok := messages.AsError(err); ok && e.Code == messages.CodeUnsupportedMediaType { // senders name types at will
		in.ContentType = ""
		found, err = s.parser.formats.detect(in)
	}
	if err != nil {
		return err
	}
	within, title, pages, charset, engine := b.within, b.title, b.pages, b.charset, b.engine
	if b.within != "" {
		b.within += "/"
	}
	b.within += a.name
	b.move(Place{})
	b.title = ""
	err = s.parser.read(ctx, in, found, s.depth+1, b)
	b.within, b.title, b.pages, b.charset, b.engine = within, title, pages, charset, engine
	b.move(Place{})
	return err
}
