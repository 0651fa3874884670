package intake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
)

// Uploads gives access to the object-store buckets of tenants.
type Uploads interface {
	// Open returns an object's content; ErrNoUpload when there is none.
	Open(ctx context.Context, tenant, object string) (io.ReadCloser, error)
	// Remove deletes an object; one that is gone is no error.
	Remove(ctx context.Context, tenant, object string) error
}

// ErrNoUpload says that the tenant's bucket has no such object.
var ErrNoUpload = errors.New("no such upload")

// contentOf returns the content that travelled in the submit.
func contentOf(s *messages.Submit) []byte {
	if s.Text != nil {
		return []byte(*s.Text)
	}
	return s.Data
}

func (in *Intake) tooLarge(size int64) error {
	return &messages.Error{
		Code: messages.CodeDocumentTooLarge, Field: "text",
		Message: fmt.Sprintf("the document has %d bytes, the most is %d", size, in.maxBytes),
	}
}

// storeUpload copies an uploaded content into the database by way of a temporary file, so that neither
// its size nor its hash need be trusted and it never sits in memory whole.
func (in *Intake) storeUpload(ctx context.Context, kb pgstore.KB, up *messages.Upload) (pgstore.Blob, error) {
	var blob pgstore.Blob
	object, err := in.uploads.Open(ctx, kb.Tenant, up.Object)
	if errors.Is(err, ErrNoUpload) {
		missing := messages.Invalid("upload.object", fmt.Sprintf("bucket %s has no object %q", messages.UploadBucket(kb.Tenant), up.Object))
		return blob, fmt.Errorf("%w: %w", err, missing)
	}
	if err != nil {
		return blob, fmt.Errorf("open upload: %w", err)
	}
	defer object.Close() //nolint:errcheck // only read
	spool, err := os.CreateTemp("", "weir-upload-*")
	if err != nil {
		return blob, fmt.Errorf("spool upload: %w", err)
	}
	defer os.Remove(spool.Name()) //nolint:errcheck // the operating system's temporary files are its own
	defer spool.Close()           //nolint:errcheck // nothing in it is kept
	hash := sha256.New()
	blob.SizeBytes, err = io.Copy(io.MultiWriter(spool, hash), io.LimitReader(object, in.maxBytes+1))
	if err != nil {
		return blob, fmt.Errorf("read upload: %w", err)
	}
	if blob.SizeBytes > in.maxBytes {
		return blob, in.tooLarge(max(blob.SizeBytes, up.Size))
	}
	hash.Sum(blob.SHA256[:0])
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return blob, fmt.Errorf("spool upload: %w", err)
	}
	return blob, in.store.PutBlob(ctx, kb.ID, blob, spool)
}
