package publish

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
)

// MaxDocumentBytes is the largest content that is sent: the services' own default limit.
const MaxDocumentBytes = client.DefaultMaxDocumentBytes

// Item is one document to publish, or the reason why there is none.
type Item struct {
	// Name is what people call it: a path, or a file and its line.
	Name string
	// Submit is everything but the content where Path or Data holds that, else the whole submit.
	Submit messages.Submit
	// Path is the file with the content. It is opened when its turn comes.
	Path string
	// Data is the content when it came from standard input.
	Data []byte
	// Err says why the item cannot be published.
	Err error
}

// key identifies the document.
func (i Item) key() string { return i.Submit.Subspace + "\x00" + i.Submit.DocID }

// whole reports that the submit holds its content itself.
func (i Item) whole() bool { return i.Path == "" && i.Data == nil }

// open returns the content and its size in bytes; the caller closes it.
func (i Item) open() (io.ReadCloser, int64, error) {
	f, err := os.Open(i.Path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.Join(fmt.Errorf("%s is no regular file", i.Path), f.Close())
	}
	return f, info.Size(), nil
}

// tooLarge is the error of a content of n bytes.
func tooLarge(n int64) error {
	return &messages.Error{
		Code: messages.CodeDocumentTooLarge, Field: "data",
		Message: fmt.Sprintf("has %d bytes, the limit is %d", n, MaxDocumentBytes),
	}
}
