package pgstore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// intakeWrites gathers what the submits of a transaction write, to be sent as one statement a table, contents first.
type intakeWrites struct {
	blobs    blobWrites
	versions versionWrites
	replaced replacedWrites
	metadata [][]any // arguments of changes of metadata alone
	owners   ownerWrites
	splits   splitWrites // versions to be split
	unsplits splitWrites // versions, not split, of documents that were
	receipts receiptWrites
}

func (w *intakeWrites) queue(b *pgx.Batch) {
	w.versions.queue(b)
	w.replaced.queue(b)
	for _, args := range w.metadata {
		b.Queue(query("intake_metadata"), args...)
	}
	w.owners.queue(b)
	w.splits.queue(b, "intake_split")
	w.unsplits.queue(b, "intake_unsplit")
	w.receipts.queue(b)
}

// blobWrites stores contents that came along, makes sure that the contents are there, and keeps the collector
// off them until the transaction ends.
type blobWrites struct {
	named map[blobName]bool

	kbIDs  []int64 // of contents that came along
	hashes [][]byte
	sizes  []int64

	partKBs    []int64
	partHashes [][]byte
	parts      []int
	data       [][]byte
}

type blobName struct {
	kbID int64
	hash [32]byte
}

func (w *blobWrites) add(sub Submission) {
	name := blobName{sub.KB.ID, sub.Blob.SHA256}
	if w.named == nil {
		w.named = map[blobName]bool{}
	}
	stored := w.named[name]
	w.named[name] = stored || sub.Content != nil
	if stored || sub.Content == nil {
		return
	}
	hash := sub.Blob.SHA256[:]
	w.kbIDs, w.hashes, w.sizes = append(w.kbIDs, name.kbID), append(w.hashes, hash), append(w.sizes, sub.Blob.SizeBytes)
	for part, rest := 0, sub.Content; len(rest) > 0; part++ {
		n := min(len(rest), BlobPartBytes)
		w.partKBs, w.partHashes = append(w.partKBs, name.kbID), append(w.partHashes, hash)
		w.parts, w.data = append(w.parts, part), append(w.data, rest[:n])
		rest = rest[n:]
	}
}

// write does so. ErrBlobGone ends the transaction, so nothing that commits it may be on its way with these statements.
func (w *blobWrites) write(ctx context.Context, conn *pgxpool.Conn) error {
	if len(w.named) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	if len(w.kbIDs) > 0 {
		b.Queue(query("blob_insert"), w.kbIDs, w.hashes, w.sizes)
		b.Queue(query("blob_part_insert"), w.partKBs, w.partHashes, w.parts, w.data)
	}
	kbIDs, hashes := make([]int64, 0, len(w.named)), make([][]byte, 0, len(w.named))
	for name := range w.named {
		kbIDs, hashes = append(kbIDs, name.kbID), append(hashes, append([]byte(nil), name.hash[:]...))
	}
	b.Queue(query("blob_lock"), kbIDs, hashes).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		return errors.Join(err, missing(len(found), len(kbIDs)))
	})
	return conn.SendBatch(ctx, b).Close()
}

func missing(found, wanted int) error {
	if found < wanted {
		return ErrBlobGone
	}
	return nil
}

// versionWrites makes new versions the newest of their documents.
type versionWrites struct {
	keys, versions, orderNS, orderSeq, kbIDs, generations, sizes []int64
	titles, ossKeys, contentTypes, metadata, typed               []string
	hashes                                                       [][]byte
	splits                                                       []bool
	owners                                                       ownerWrites
}

func (w *versionWrites) add(sub Submission, typed json.RawMessage, key, version int64) {
	w.keys, w.versions = append(w.keys, key), append(w.versions, version)
	w.orderNS, w.orderSeq = append(w.orderNS, sub.Order.At.UnixNano()), append(w.orderSeq, int64(sub.Order.Seq)) //nolint:gosec // a stream's sequence
	w.kbIDs, w.generations = append(w.kbIDs, sub.KB.ID), append(w.generations, sub.KB.Generation.ID)
	w.titles, w.ossKeys, w.contentTypes = append(w.titles, sub.Title), append(w.ossKeys, sub.OSSKey), append(w.contentTypes, sub.ContentType)
	w.metadata, w.typed = append(w.metadata, string(sub.Metadata)), append(w.typed, string(typed))
	w.hashes, w.sizes = append(w.hashes, sub.Blob.SHA256[:]), append(w.sizes, sub.Blob.SizeBytes)
	w.splits = append(w.splits, sub.Split)
	w.owners.add(key, sub.Line)
}

func (w *versionWrites) queue(b *pgx.Batch) {
	if len(w.keys) == 0 {
		return
	}
	b.Queue(query("intake_advance"), w.keys, w.versions, w.orderNS, w.orderSeq, w.owners.parents, w.owners.versions, w.owners.numbers)
	b.Queue(query("intake_version"), w.keys, w.versions, w.kbIDs, w.generations, w.titles, w.ossKeys, w.contentTypes,
		w.metadata, w.typed, w.hashes, w.sizes, w.splits)
}

// replacedWrites drops versions that new ones overtake, but for what is live, and what is staged of them.
type replacedWrites struct {
	keys, versions []int64
	live           []*int64
}

func (w *replacedWrites) add(key, version int64, live *int64) {
	w.keys, w.versions, w.live = append(w.keys, key), append(w.versions, version), append(w.live, live)
}

func (w *replacedWrites) queue(b *pgx.Batch) {
	if len(w.keys) > 0 {
		b.Queue(query("intake_drop_versions"), w.keys, w.versions, w.live)
		b.Queue(query("intake_drop_staged"), w.keys, w.versions)
	}
}

// receiptRow is a row of document_receipts to be written.
type receiptRow struct {
	source, submitID   string
	kbID, key, version int64
	order              Order
	overtaken          *int64
}

// queue queues the row alone.
func (r receiptRow) queue(b *pgx.Batch, a Acceptance) {
	var w receiptWrites
	w.add(r, a)
	w.queue(b)
}

type receiptWrites struct {
	sources, submitIDs, outcomes, statuses   []string
	kbIDs, keys, versions, orderNS, orderSeq []int64
	overtaken                                []*int64
}

func (w *receiptWrites) add(r receiptRow, a Acceptance) {
	w.sources, w.submitIDs = append(w.sources, r.source), append(w.submitIDs, r.submitID)
	w.outcomes, w.statuses = append(w.outcomes, string(a.Outcome)), append(w.statuses, string(a.Status))
	w.kbIDs, w.keys, w.versions = append(w.kbIDs, r.kbID), append(w.keys, r.key), append(w.versions, r.version)
	w.orderNS, w.orderSeq = append(w.orderNS, r.order.At.UnixNano()), append(w.orderSeq, int64(r.order.Seq)) //nolint:gosec // a stream's sequence
	w.overtaken = append(w.overtaken, r.overtaken)
}

func (w *receiptWrites) queue(b *pgx.Batch) {
	if len(w.keys) > 0 {
		b.Queue(query("intake_write_receipt"), w.sources, w.kbIDs, w.keys, w.versions, w.orderNS, w.orderSeq, w.submitIDs, w.outcomes, w.statuses, w.overtaken)
	}
}
