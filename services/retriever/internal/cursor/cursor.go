// Package cursor carries the results of a query that were not delivered yet: in the hands of the client, so
// that the server keeps nothing, and authenticated, so that the client can neither read into another tenant's
// nor change what it holds.
package cursor

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// MaxAge is how long a cursor holds.
const MaxAge = 15 * time.Minute

// Owner is what a cursor is bound to.
type Owner struct {
	Tenant, KB string
	Request    [sha256.Size]byte // RequestHash
}

// RequestHash identifies a request. Its cursor and the name of its knowledge base, which may be left to the
// subject, take no part.
func RequestHash(req *messages.RetrieveRequest) ([sha256.Size]byte, error) {
	plain := *req
	plain.Cursor, plain.KnowledgeBaseName = "", ""
	data, err := json.Marshal(plain)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("hash request: %w", err)
	}
	return sha256.Sum256(data), nil
}

// Page is what is left of a query.
type Page struct {
	KBID, Generation int64
	Fusion           string // of the diagnostics
	Fallback         bool   // the full-text leg answered for an empty dense one
	Entries          []Entry
	// Weights of the legs, of no meaning without Explain in the entries.
	DenseWeight, TextWeight float64
}

// Entry is a result in its place.
type Entry struct {
	ChunkID            int64
	Score, Raw, Scaled float64
	Dense, Text        *Share // nil: not to be explained, or the leg took no part
	Omitted            bool   // by the rerank model
}

// Share is a leg's part in a score.
type Share struct {
	Rank      int
	Raw, Part float64
}

// Signer makes and reads cursors. Safe for concurrent use.
type Signer struct {
	key []byte
	now func() time.Time
}

// NewSigner returns a signer with a key of at least 16 bytes.
func NewSigner(key []byte, now func() time.Time) *Signer { return &Signer{key: key, now: now} }

// RandomKey returns a new key.
func RandomKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) //nolint:errcheck // never fails
	return key
}

// The first byte of a cursor says how it pages.
const (
	version            = 1 // by a list of what is left
	placeVersion       = 2 // by the place that the page before ended at
	joinedVersion      = 3 // by a list, of several knowledge bases
	joinedPlaceVersion = 4 // by a place in one of several
)

var encoding = base64.RawURLEncoding

// Seal returns the cursor of a page, the empty string when nothing is left.
func (s *Signer) Seal(owner Owner, p Page) string {
	if len(p.Entries) == 0 {
		return ""
	}
	return s.sign(owner, appendPage([]byte{version}, p, s.now()))
}

// sign is the text of a cursor with this body.
func (s *Signer) sign(owner Owner, body []byte) string {
	return encoding.EncodeToString(append(body, s.mac(owner, body)...))
}

// Bound is how long the cursor of so many entries is at most.
func Bound(entries int, explain bool) int {
	each := 9 + 1 + 3*8
	if explain {
		each += 2 * (5 + 2*8)
	}
	return encoding.EncodedLen(128 + each*entries + sha256.Size)
}

func (s *Signer) mac(owner Owner, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "%d %s %d %s ", len(owner.Tenant), owner.Tenant, len(owner.KB), owner.KB)
	h.Write(owner.Request[:])
	h.Write(body)
	return h.Sum(nil)
}

func failed(code messages.Code, message string) error {
	return &messages.Error{Code: code, Field: "cursor", Message: message}
}

// Open reads a cursor. One that was not made by this key for this owner is CURSOR_INVALID, one over MaxAge
// CURSOR_EXPIRED.
func (s *Signer) Open(owner Owner, text string) (Page, error) {
	return open(s, owner, text, readPage)
}

// open reads a cursor of either kind.
func open[T any](s *Signer, owner Owner, text string, read func(body []byte) (T, time.Time, error)) (T, error) {
	var none T
	data, err := encoding.Strict().DecodeString(text)
	if err != nil || len(data) <= sha256.Size {
		return none, failed(messages.CodeCursorInvalid, "is no cursor")
	}
	body, mac := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if !hmac.Equal(mac, s.mac(owner, body)) {
		return none, failed(messages.CodeCursorInvalid, "is not of this request, this knowledge base or this server's key")
	}
	p, issued, err := read(body)
	if err != nil {
		return none, failed(messages.CodeCursorInvalid, "is of another version")
	}
	if age := s.now().Sub(issued); age > MaxAge {
		return none, failed(messages.CodeCursorExpired, fmt.Sprintf("is older than %s", MaxAge))
	}
	return p, nil
}

// Expired is the error of a cursor whose results are not there any more.
func Expired() error {
	return failed(messages.CodeCursorExpired, "is of an index that was replaced")
}

// Flags of a page and of an entry.
const (
	flagFallback = 1 << iota
	flagRaw      // Raw differs from Score
	flagScaled   // Scaled differs from Score
	flagDense
	flagText
	flagOmitted
)

func appendPage(b []byte, p Page, at time.Time) []byte {
	b = binary.AppendVarint(b, at.Unix())
	b = binary.AppendVarint(b, p.KBID)
	b = binary.AppendVarint(b, p.Generation)
	flags := byte(0)
	if p.Fallback {
		flags |= flagFallback
	}
	b = append(b, flags, byte(len(p.Fusion)))
	b = append(b, p.Fusion...)
	b = appendFloat(appendFloat(b, p.DenseWeight), p.TextWeight)
	b = binary.AppendUvarint(b, uint64(len(p.Entries)))
	last := int64(0)
	for i := range p.Entries {
		b = appendEntry(b, &p.Entries[i], last)
		last = p.Entries[i].ChunkID
	}
	return b
}

func appendEntry(b []byte, e *Entry, last int64) []byte {
	flags := byte(0)
	for _, f := range []struct {
		flag byte
		set  bool
	}{{flagRaw, e.Raw != e.Score}, {flagScaled, e.Scaled != e.Score}, {flagDense, e.Dense != nil}, {flagText, e.Text != nil}, {flagOmitted, e.Omitted}} {
		if f.set {
			flags |= f.flag
		}
	}
	b = append(binary.AppendVarint(b, e.ChunkID-last), flags)
	b = appendFloat(b, e.Score)
	if flags&flagRaw != 0 {
		b = appendFloat(b, e.Raw)
	}
	if flags&flagScaled != 0 {
		b = appendFloat(b, e.Scaled)
	}
	for _, s := range []*Share{e.Dense, e.Text} {
		if s != nil {
			b = binary.AppendVarint(b, int64(s.Rank))
			b = appendFloat(appendFloat(b, s.Raw), s.Part)
		}
	}
	return b
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

var (
	errShort   = errors.New("cursor ends too early")
	errVersion = errors.New("another version")
)

// reader reads what was appended; after an error everything is zero.
type reader struct {
	data []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.data) {
		r.err = errShort
		return make([]byte, n)
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 || r.err != nil {
		r.err = errShort
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) float() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))) }

func readPage(body []byte) (Page, time.Time, error) {
	r := &reader{data: body}
	if r.take(1)[0] != version {
		return Page{}, time.Time{}, errVersion
	}
	issued := time.Unix(r.varint(), 0)
	p := Page{KBID: r.varint(), Generation: r.varint()}
	p.Fallback = r.take(1)[0]&flagFallback != 0
	p.Fusion = string(r.take(int(r.take(1)[0])))
	p.DenseWeight, p.TextWeight = r.float(), r.float()
	count, n := binary.Uvarint(r.data)
	if n <= 0 || r.err != nil || count > uint64(len(r.data)) {
		return Page{}, time.Time{}, errShort
	}
	r.data = r.data[n:]
	p.Entries = make([]Entry, count)
	last := int64(0)
	for i := range p.Entries {
		r.entry(&p.Entries[i], last)
		last = p.Entries[i].ChunkID
	}
	return p, issued, r.err
}

func (r *reader) entry(e *Entry, last int64) {
	e.ChunkID = last + r.varint()
	flags := r.take(1)[0]
	e.Omitted = flags&flagOmitted != 0
	e.Score = r.float()
	e.Raw, e.Scaled = e.Score, e.Score
	if flags&flagRaw != 0 {
		e.Raw = r.float()
	}
	if flags&flagScaled != 0 {
		e.Scaled = r.float()
	}
	if flags&flagDense != 0 {
		e.Dense = &Share{Rank: int(r.varint()), Raw: r.float(), Part: r.float()}
	}
	if flags&flagText != 0 {
		e.Text = &Share{Rank: int(r.varint()), Raw: r.float(), Part: r.float()}
	}
}
