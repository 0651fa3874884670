package cursor

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Place is where a page ended in an order that the database keeps: the last chunk delivered.
type Place struct {
	KBID, Generation int64
	Subspace, DocID  string
	Ordinal          int
}

// SealPlace returns the cursor of what follows a place.
func (s *Signer) SealPlace(owner Owner, p Place) string {
	return s.sign(owner, appendPlace(binary.AppendVarint([]byte{placeVersion}, s.now().Unix()), p))
}

func appendPlace(b []byte, p Place) []byte {
	b = binary.AppendVarint(b, p.KBID)
	b = binary.AppendVarint(b, p.Generation)
	b = binary.AppendVarint(b, int64(p.Ordinal))
	for _, text := range []string{p.Subspace, p.DocID} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// OpenPlace is Open for cursors of SealPlace.
func (s *Signer) OpenPlace(owner Owner, text string) (Place, error) {
	return open(s, owner, text, readPlace)
}

// PlaceBound is how long a cursor of SealPlace is at most.
func PlaceBound() int {
	return encoding.EncodedLen(256 + messages.MaxDocIDBytes + sha256.Size)
}

func readPlace(body []byte) (Place, time.Time, error) {
	r := &reader{data: body}
	if r.take(1)[0] != placeVersion {
		return Place{}, time.Time{}, errVersion
	}
	issued := time.Unix(r.varint(), 0)
	p := r.place()
	return p, issued, r.err
}

func (r *reader) place() Place {
	p := Place{KBID: r.varint(), Generation: r.varint(), Ordinal: int(r.varint())}
	p.Subspace, p.DocID = r.text(), r.text()
	return p
}

func (r *reader) text() string {
	n, size := binary.Uvarint(r.data)
	if size <= 0 || r.err != nil || n > uint64(len(r.data)) {
		r.err = errShort
		return ""
	}
	r.data = r.data[size:]
	return string(r.take(int(n))) //nolint:gosec // no longer than the data
}
