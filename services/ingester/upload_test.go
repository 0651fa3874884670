package ingester_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
	"github.com/weir-project/weir/services/ingester/internal/intake"
)

// bucket is upload buckets in memory; the contract below runs over it and the real ones.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	opened  int
	broken  error // of every call
}

var _ intake.Uploads = (*bucket)(nil)

func (b *bucket) Open(_ context.Context, tenant, object string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, b.broken
	}
	b.opened++
	data, ok := b.objects[tenant+"/"+object]
	if !ok {
		return nil, intake.ErrNoUpload
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (b *bucket) Remove(_ context.Context, tenant, object string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, tenant+"/"+object)
	return b.broken
}

// put has an object uploaded.
type put func(tenant, object string, data []byte)

func inMemory() (*bucket, put) {
	b := &bucket{objects: map[string][]byte{}}
	return b, func(tenant, object string, data []byte) { b.objects[tenant+"/"+object] = data }
}

func inJetStream(t *testing.T) (intake.Uploads, put) {
	t.Helper()
	_, connect := testkit.NATS(t)
	js := testkit.JetStream(t, connect())
	return intake.NewUploads(js), func(tenant, object string, data []byte) {
		t.Helper()
		store, err := js.CreateOrUpdateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: messages.UploadBucket(tenant)})
		if err == nil {
			_, err = store.PutBytes(t.Context(), object, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestUploadsKeepTheirContract(t *testing.T) {
	t.Parallel()
	memory, putMemory := inMemory()
	stream, putStream := inJetStream(t)
	for name, c := range map[string]struct {
		uploads intake.Uploads
		put     put
	}{"memory": {memory, putMemory}, "object store": {stream, putStream}} {
		t.Run(name, func(t *testing.T) {
			missing := func(tenant, object string) {
				t.Helper()
				if _, err := c.uploads.Open(t.Context(), tenant, object); !errors.Is(err, intake.ErrNoUpload) {
					t.Errorf("open %s of %s: got %v, want ErrNoUpload", object, tenant, err)
				}
				if err := c.uploads.Remove(t.Context(), tenant, object); err != nil {
					t.Errorf("remove %s of %s, which is not there: %v", object, tenant, err)
				}
			}
			missing("acme", "report") // no bucket at all
			want := bytes.Repeat([]byte("content "), 100_000)
			c.put("acme", "a report/ü.pdf", want)
			c.put("acme", "empty", nil)
			missing("acme", "report")
			missing("other", "a report/ü.pdf")
			for object, want := range map[string][]byte{"a report/ü.pdf": want, "empty": nil} {
				r, err := c.uploads.Open(t.Context(), "acme", object)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: got %d bytes (%v), want %d", object, len(got), err, len(want))
				}
				if err := c.uploads.Remove(t.Context(), "acme", object); err != nil {
					t.Errorf("remove: %v", err)
				}
				missing("acme", object)
			}
		})
	}
}

func TestAnUploadIsStoredAndRemoved(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	put(tenant, "o1", []byte("uploaded text"))
	from := l.from(`{"docId":"d","contentType":"text/plain","upload":{"object":"o1","size":1}}`, nil) // its size need not be true
	first, err := l.intake.Submit(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	wantTold(t, "upload", first.Messages, "Pending v1 m1", "parse")
	if len(uploads.objects) != 0 {
		t.Error("the object is still there")
	}
	again, err := l.intake.Submit(t.Context(), from) // delivered again, when the object is gone
	if err != nil || !slices.Equal(names(again.Messages), names(first.Messages)) || uploads.opened != 1 {
		t.Errorf("delivered again: got %v (%v), want %v without opening the object", names(again.Messages), err, names(first.Messages))
	}
	if n := l.count("SELECT count(*) FROM blob_parts WHERE data = 'uploaded text'"); n != 1 {
		t.Errorf("got %d such contents, want one", n)
	}
	put(tenant, "o2", []byte("uploaded text"))
	v := l.submit(`{"docId":"d","contentType":"text/plain","upload":{"object":"o2","size":13}}`)
	wantTold(t, "the same content again", v.Messages, "Pending v1 m2")
	if len(uploads.objects) != 0 {
		t.Error("the object is still there")
	}
}

// A publisher that missed the acknowledgement stores its message again, when the first may have been worked off.
func TestAnUploadThatIsStoredTwiceIsOneSubmit(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	put(tenant, "o1", []byte("uploaded text"))
	const body = `{"docId":"d","contentType":"text/plain","upload":{"object":"o1","size":13}}`
	first := l.from(body, nil)
	if _, err := l.intake.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	copied := l.from(body, nil)
	copied.SubmitID = first.SubmitID
	v, err := l.intake.Submit(t.Context(), copied)
	if err != nil {
		t.Fatalf("the copy: %v", err)
	}
	wantTold(t, "the copy", v.Messages, "Pending v1 m1", "parse")
	_, err = l.intake.Submit(t.Context(), l.from(body, nil))
	wantError(t, "another submit of the object that is gone", err, messages.CodeValidation, "upload.object")
}

// Ids of messages and names of objects may be used again, as for each version of a document.
func TestAnUploadUnderTheIDAndNameOfAnotherIsASubmitOfItsOwn(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	upload := func(doc, text string) (intake.Verdict, error) {
		put(tenant, "o1", []byte(text))
		from := l.from(fmt.Sprintf(`{"docId":%q,"contentType":"text/plain","upload":{"object":"o1","size":%d}}`, doc, len(text)), nil)
		from.SubmitID = "same"
		return l.intake.Submit(t.Context(), from)
	}
	for i, text := range []string{"one", "another"} {
		v, err := upload("d", text)
		if err != nil || v.Reply.Version != int64(i+1) || v.Reply.Unchanged {
			t.Errorf("%s: got %+v (%v), want version %d", text, v.Reply, err, i+1)
		}
	}
	if v, err := upload("e", "of another document"); err != nil || v.Reply.Version != 1 || v.Reply.DocID != "e" {
		t.Errorf("another document: got %+v (%v), want a version of it", v.Reply, err)
	}
	if n := l.count("SELECT count(*) FROM document_versions WHERE sha256 = sha256('another')"); n != 1 {
		t.Error("the newer content is not kept")
	}
}

func TestUploadsThatCannotBeTakenUp(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	put(tenant, "big", bytes.Repeat([]byte("x"), maxBytes+1))
	put("other", "foreign", []byte("x"))
	for _, c := range []struct {
		object, field string
		code          messages.Code
	}{
		{"none", "upload.object", messages.CodeValidation},
		{"foreign", "upload.object", messages.CodeValidation},
		{"big", "text", messages.CodeDocumentTooLarge},
	} {
		_, err := l.intake.Submit(t.Context(), l.from(fmt.Sprintf(`{"docId":"d","upload":{"object":%q,"size":1}}`, c.object), nil))
		wantError(t, c.object, err, c.code, c.field)
	}
	put(tenant, "small", []byte("x"))
	uploads.broken = errors.New("the bus is away")
	_, err := l.intake.Submit(t.Context(), l.from(`{"docId":"d","upload":{"object":"small","size":1}}`, nil))
	if _, permanent := messages.AsError(err); permanent || !errors.Is(err, uploads.broken) {
		t.Errorf("got %v, want the outage", err)
	}
	if n := l.count("SELECT count(*) FROM blobs"); n != 0 {
		t.Errorf("they left %d contents", n)
	}
}

func TestALargeUploadIsStoredInParts(t *testing.T) {
	uploads, put := inMemory()
	l := newLab(t, uploads)
	l.intake = intake.New(l.store, uploads, testkit.Logger(t), 8<<20)
	text := strings.Repeat("0123456789abcde\n", 3<<20/16)
	put(tenant, "o", []byte(text))
	l.submit(`{"docId":"d","upload":{"object":"o","size":3145728}}`)
	kb := l.kb("docs")
	if n := l.count("SELECT count(*) FROM blob_parts WHERE kb_id = $1", kb.ID); n != 3 {
		t.Errorf("got %d parts, want 3", n)
	}
}
