package cursor

import (
	"encoding/binary"
	"math"
	"time"
)

// Joined is what is left of a query of several knowledge bases.
type Joined struct {
	KBs    []Origin // in the order of the request; zero: gave nothing
	Fusion string   // of the diagnostics
	Texts  []Text
	// Weights of the legs, of no meaning without Explain in the texts.
	DenseWeight, TextWeight float64
}

// Origin is a knowledge base that results are of.
type Origin struct {
	KBID, Generation int64
	Fallback         bool // the full-text leg answered for an empty dense one
}

// Text is a result: chunks of one text, the best first, at the place and with the score of the best.
type Text struct {
	Entry            // of the best as it was ranked; ChunkID is Holders[0]'s
	Holders []Holder // one at least
}

// Holder is a chunk of a text.
type Holder struct {
	KB      int // place in KBs
	ChunkID int64
	Score   float64
}

// SealJoined returns the cursor of what is left, the empty string when nothing is.
func (s *Signer) SealJoined(owner Owner, j Joined) string {
	if len(j.Texts) == 0 {
		return ""
	}
	return s.sign(owner, appendJoined([]byte{joinedVersion}, &j, s.now()))
}

// OpenJoined is Open for cursors of SealJoined.
func (s *Signer) OpenJoined(owner Owner, text string) (Joined, error) {
	return open(s, owner, text, readJoined)
}

// JoinedBound is how long the cursor of so many texts is at most, held by so many chunks of all knowledge bases.
func JoinedBound(kbs, texts, holders int, explain bool) int {
	const origin, text, holder = 2*binary.MaxVarintLen64 + 1, 2 * binary.MaxVarintLen32, binary.MaxVarintLen32 + binary.MaxVarintLen64 + 8
	return Bound(texts, explain) + encoding.EncodedLen(64+origin*kbs+text*texts+holder*holders)
}

func appendJoined(b []byte, j *Joined, at time.Time) []byte {
	b = binary.AppendVarint(b, at.Unix())
	b = append(binary.AppendUvarint(b, uint64(len(j.Fusion))), j.Fusion...)
	b = appendFloat(appendFloat(b, j.DenseWeight), j.TextWeight)
	b = binary.AppendUvarint(b, uint64(len(j.KBs)))
	for _, o := range j.KBs {
		flags := byte(0)
		if o.Fallback {
			flags = flagFallback
		}
		b = append(binary.AppendVarint(binary.AppendVarint(b, o.KBID), o.Generation), flags)
	}
	b = binary.AppendUvarint(b, uint64(len(j.Texts)))
	last := int64(0)
	for i := range j.Texts {
		b = appendText(b, &j.Texts[i], last)
		last = j.Texts[i].ChunkID
	}
	return b
}

func appendText(b []byte, t *Text, last int64) []byte {
	b = appendEntry(b, &t.Entry, last)
	b = binary.AppendUvarint(b, uint64(t.Holders[0].KB)) //nolint:gosec // a place
	b = binary.AppendUvarint(b, uint64(len(t.Holders)-1))
	for _, h := range t.Holders[1:] {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(h.KB)), h.ChunkID) //nolint:gosec // a place
		b = appendFloat(b, h.Score)
	}
	return b
}

func readJoined(body []byte) (Joined, time.Time, error) {
	r := &reader{data: body}
	if r.take(1)[0] != joinedVersion {
		return Joined{}, time.Time{}, errVersion
	}
	issued := time.Unix(r.varint(), 0)
	j := Joined{Fusion: r.text(), DenseWeight: r.float(), TextWeight: r.float()}
	j.KBs = make([]Origin, r.count())
	for i := range j.KBs {
		j.KBs[i] = Origin{KBID: r.varint(), Generation: r.varint(), Fallback: r.take(1)[0]&flagFallback != 0}
	}
	j.Texts = make([]Text, r.count())
	last := int64(0)
	for i := range j.Texts {
		r.joinedText(&j.Texts[i], last)
		last = j.Texts[i].ChunkID
	}
	return j, issued, r.err
}

func (r *reader) joinedText(t *Text, last int64) {
	r.entry(&t.Entry, last)
	t.Holders = []Holder{{KB: r.index(), ChunkID: t.ChunkID, Score: t.Score}}
	for range r.count() {
		t.Holders = append(t.Holders, Holder{KB: r.index(), ChunkID: r.varint(), Score: r.float()})
	}
}

// count reads a number of things of which each takes a byte at least.
func (r *reader) count() int { return r.uvarint(uint64(len(r.data))) }

// index reads a place in a short list.
func (r *reader) index() int { return r.uvarint(math.MaxUint16) }

func (r *reader) uvarint(most uint64) int {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || r.err != nil || v > most {
		r.err = errShort
		return 0
	}
	r.data = r.data[n:]
	return int(v) //nolint:gosec // no more than most
}

// JoinedPlace is where a page of a FILTER query of several knowledge bases ended.
type JoinedPlace struct {
	KB    int // place in the request
	Place     // in that knowledge base; without a document id: before all of it
}

// SealJoinedPlace returns the cursor of what follows a place.
func (s *Signer) SealJoinedPlace(owner Owner, p JoinedPlace) string {
	b := binary.AppendVarint([]byte{joinedPlaceVersion}, s.now().Unix())
	return s.sign(owner, appendPlace(binary.AppendUvarint(b, uint64(p.KB)), p.Place)) //nolint:gosec // a place
}

// OpenJoinedPlace is Open for cursors of SealJoinedPlace.
func (s *Signer) OpenJoinedPlace(owner Owner, text string) (JoinedPlace, error) {
	return open(s, owner, text, func(body []byte) (JoinedPlace, time.Time, error) {
		r := &reader{data: body}
		if r.take(1)[0] != joinedPlaceVersion {
			return JoinedPlace{}, time.Time{}, errVersion
		}
		issued := time.Unix(r.varint(), 0)
		p := JoinedPlace{KB: r.index()}
		p.Place = r.place()
		return p, issued, r.err
	})
}
