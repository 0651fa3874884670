package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// uploadTimeout bounds the reading of an upload: without a deadline the client gives up after five
// seconds of reading.
const uploadTimeout = 10 * time.Minute

// objectStores is Uploads over JetStream's object store.
type objectStores struct{ js jetstream.JetStream }

// NewUploads returns the upload buckets of a JetStream account.
func NewUploads(js jetstream.JetStream) Uploads { return objectStores{js} }

func (o objectStores) Open(ctx context.Context, tenant, object string) (io.ReadCloser, error) {
	bucket, err := o.js.ObjectStore(ctx, messages.UploadBucket(tenant))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, ErrNoUpload
	}
	if err != nil {
		return nil, fmt.Errorf("open upload bucket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	result, err := bucket.Get(ctx, object)
	if err != nil {
		cancel()
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil, ErrNoUpload
		}
		return nil, err
	}
	return cancelReader{result, cancel}, nil
}

// cancelReader frees the context of an object when it is closed.
type cancelReader struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (r cancelReader) Close() error {
	defer r.cancel()
	return r.ReadCloser.Close()
}

func (o objectStores) Remove(ctx context.Context, tenant, object string) error {
	bucket, err := o.js.ObjectStore(ctx, messages.UploadBucket(tenant))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open upload bucket: %w", err)
	}
	err = bucket.Delete(ctx, object)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	return err
}
