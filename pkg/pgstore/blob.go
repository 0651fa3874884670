package pgstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// BlobPartBytes is the size of a stored part: contents never sit whole in memory.
const BlobPartBytes = 1 << 20

// ErrBlobGone is returned when a content that was stored has been collected meanwhile: store it again.
var ErrBlobGone = errors.New("the stored content is gone")

// Blob names stored content within a knowledge base.
type Blob struct {
	SHA256    [sha256.Size]byte
	SizeBytes int64
}

// PutBlob stores content read from r, whose hash and size are known already, in a transaction of its
// own. Content that is there already is not read. It is kept for an hour even when nothing refers to
// it, which is when its submit must have been accepted.
func (s *Store) PutBlob(ctx context.Context, kbID int64, b Blob, r io.Reader) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, query("blob_insert"), []int64{kbID}, [][]byte{b.SHA256[:]}, []int64{b.SizeBytes})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return putParts(ctx, tx, kbID, b, r)
	})
	if err != nil {
		return fmt.Errorf("store content: %w", err)
	}
	return nil
}

func putParts(ctx context.Context, tx pgx.Tx, kbID int64, b Blob, r io.Reader) error {
	buf := make([]byte, min(BlobPartBytes, max(b.SizeBytes, 1)))
	for part, left := 0, b.SizeBytes; left > 0; part++ {
		n, err := io.ReadFull(r, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return fmt.Errorf("read content: %w", err)
		}
		if _, err := tx.Exec(ctx, query("blob_part_insert"), []int64{kbID}, [][]byte{b.SHA256[:]}, []int{part}, [][]byte{buf[:n]}); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// OpenBlob returns a reader of stored content that fetches a part at a time. It is not safe for
// concurrent use; ctx bounds every read.
func (s *Store) OpenBlob(ctx context.Context, kbID int64, b Blob) io.Reader {
	return &blobReader{ctx: ctx, store: s, kbID: kbID, blob: b, left: b.SizeBytes}
}

type blobReader struct {
	ctx   context.Context //nolint:containedctx // an io.Reader has no other place for it
	store *Store
	kbID  int64
	blob  Blob
	part  int
	buf   []byte
	left  int64
}

func (r *blobReader) Read(p []byte) (int, error) {
	if len(r.buf) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		err := r.store.pool.QueryRow(r.ctx, query("blob_part"), r.kbID, r.blob.SHA256[:], r.part).Scan(&r.buf)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, ErrBlobGone
		}
		if err != nil {
			return 0, fmt.Errorf("read content part %d: %w", r.part, err)
		}
		r.part++
		r.left -= int64(len(r.buf))
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// Bounds of collecting contents: those that one look finds, which reads a row of every content there is, and those that one
// transaction removes.
const (
	collectLook = 100_000
	collectDrop = 1000
)

// CollectBlobs removes contents older than age that no version refers to, and returns how many.
func (s *Store) CollectBlobs(ctx context.Context, age time.Duration) (int, error) {
	for total := 0; ; {
		found, n, err := s.collectSome(ctx, age)
		if total += n; err != nil {
			return total, fmt.Errorf("collect contents: %w", err)
		}
		if found < collectLook || n == 0 { // all, or nothing but what others hold
			return total, nil
		}
	}
}

func (s *Store) collectSome(ctx context.Context, age time.Duration) (found, dropped int, err error) {
	rows, err := s.pool.Query(ctx, query("blob_candidates"), age.Seconds(), collectLook)
	if err != nil {
		return 0, 0, err
	}
	byKB := map[int64][][]byte{}
	var kbID int64
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&kbID, &hash}, func() error {
		byKB[kbID] = append(byKB[kbID], append([]byte(nil), hash...))
		found++
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	for kbID, hashes := range byKB {
		for some := range slices.Chunk(hashes, collectDrop) {
			err := s.inTx(ctx, func(tx pgx.Tx) error {
				n, err := dropBlobs(ctx, tx, kbID, some)
				dropped += n
				return err
			})
			if err != nil {
				return found, dropped, err
			}
		}
	}
	return found, dropped, nil
}

// dropBlobs removes those of the contents that nothing refers to. It locks first and looks with a
// later snapshot, so an intake that takes a reference meanwhile is either seen or waits and finds the
// content gone.
func dropBlobs(ctx context.Context, tx pgx.Tx, kbID int64, hashes [][]byte) (int, error) {
	rows, err := tx.Query(ctx, query("blob_claim"), kbID, hashes)
	if err != nil {
		return 0, err
	}
	claimed, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	tag, err := tx.Exec(ctx, query("blob_drop"), kbID, claimed)
	return int(tag.RowsAffected()), err
}
