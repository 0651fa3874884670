package intake

import (
	"context"
	"net/url"

	"github.com/weir-project/weir/pkg/messages"
)

// Unlocker opens protected documents. Errors that belong to the document are *messages.Error.
type Unlocker interface {
	Unlock(ctx context.Context, data []byte, password string) ([]byte, error)
}

// maxPasswordBytes bounds a password.
const maxPasswordBytes = 1024

// UnlockWith sets what opens protected documents; without it a password is refused. Call it before the
// first submit.
func (in *Intake) UnlockWith(u Unlocker) { in.unlocker = u }

// unlock replaces the content of a submit that came with a password by the same without protection. So the
// password is needed here only: it is in no row, no message and no log, and the document can be read again
// whenever that must be. A publish that carries one was stored with it already and is refused.
func (in *Intake) unlock(ctx context.Context, from From, s *messages.Submit) error {
	header := from.Header(messages.HeaderPassword)
	if header == "" {
		return nil
	}
	password, err := url.PathUnescape(header)
	switch {
	case err != nil || len(password) > maxPasswordBytes:
		return messages.Invalid(messages.HeaderPassword, "must be percent-encoded text of at most 1024 bytes")
	case !from.Request || in.unlocker == nil:
		return messages.Invalid(messages.HeaderPassword, "may come with a request only: a publish would store it")
	case s.Upload != nil:
		return messages.Invalid(messages.HeaderPassword, "does not go with an upload: send the document in the request, or without its protection")
	case s.Text != nil:
		return nil // text is never protected
	}
	content := contentOf(s)
	if int64(len(content)) > in.maxBytes {
		return in.tooLarge(int64(len(content)))
	}
	if s.Data, err = in.unlocker.Unlock(ctx, content, password); err != nil {
		if document, ok := messages.AsError(err); ok && document.Field == "" {
			named := *document
			named.Field = "data"
			return &named
		}
	}
	return err
}
