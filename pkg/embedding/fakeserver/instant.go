package fakeserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/pkg/embedding"
)

// Instant is an http.Handler that answers with vectors computed beforehand, so that a benchmark measures
// everything but the model. The vectors have nothing to do with the texts; some thousand differ. It serves base64
// alone. Safe for concurrent use; see NewInstant.
type Instant struct {
	items   []string // each from the comma behind the index to the end of the item
	next    atomic.Uint64
	texts   atomic.Uint64
	buffers sync.Pool // of *bytes.Buffer
}

// instantVectors is how many vectors differ.
const instantVectors = 1024

// NewInstant returns a handler of vectors of so many dimensions.
func NewInstant(dims int) *Instant {
	s := &Instant{items: make([]string, instantVectors), buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	fake := embedding.Fake{Dims: dims}
	for i := range s.items {
		vector := embedding.EncodeVector(fake.Vector(fmt.Sprintf("vector %d", i)))
		s.items[i] = `,"embedding":"` + base64.StdEncoding.EncodeToString(vector) + `"}`
	}
	return s
}

// Texts is how many texts got a vector.
func (s *Instant) Texts() int { return int(s.texts.Load()) }

// ServeHTTP answers POST /v1/embeddings.
func (s *Instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(body)
	body.Reset()
	body.Grow(int(min(max(r.ContentLength, 0), maxRequestBytes)) + bytes.MinRead) // the end is found without growing
	if _, err := io.Copy(body, http.MaxBytesReader(w, r.Body, maxRequestBytes)); err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "request body too large", "")
		return
	}
	n, err := countInputs(body.Bytes())
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	s.answer(w, n, body.Len()/4)
}

func (s *Instant) answer(w http.ResponseWriter, n, tokens int) {
	out := s.buffers.Get().(*bytes.Buffer)
	defer s.buffers.Put(out)
	out.Reset()
	out.WriteString(`{"object":"list","data":[`)
	from := s.next.Add(uint64(n))
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`{"object":"embedding","index":`)
		out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(i), 10))
		out.WriteString(s.items[(from+uint64(i))%instantVectors])
	}
	fmt.Fprintf(out, `],"model":"instant","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, tokens, tokens)
	s.texts.Add(uint64(n))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = w.Write(out.Bytes()) // a client that left needs no answer
}

var errInstant = errors.New("only lists of strings and base64 are served")

// countInputs counts the texts of a request without decoding them. Inside of a string quotes are escaped, so what it
// looks for can only be the keys; a body that looks different is decoded.
func countInputs(body []byte) (int, error) {
	if bytes.Contains(body, []byte(`"encoding_format":"base64"`)) {
		if _, list, ok := bytes.Cut(body, []byte(`"input":["`)); ok {
			if n := countStrings(list); n > 0 {
				return n, nil
			}
		}
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil || len(req.Input) == 0 || req.EncodingFormat != "base64" {
		return 0, errInstant
	}
	return len(req.Input), nil
}

// countStrings counts those of a list without spaces between them, from behind its first quote to its end; 0 where
// there is none.
func countStrings(list []byte) (n int) {
	for {
		end := stringEnd(list)
		if end < 0 || end+1 >= len(list) {
			return 0
		}
		n++
		switch list = list[end+1:]; {
		case list[0] == ']':
			return n
		case !bytes.HasPrefix(list, []byte(`,"`)):
			return 0
		}
		list = list[2:]
	}
}

// stringEnd is where the closing quote of a string stands, -1 where there is none: the first with an even number of
// backslashes before it.
func stringEnd(s []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(s[at:], '"')
		if i < 0 {
			return -1
		}
		at += i
		before := at
		for before > 0 && s[before-1] == '\\' {
			before--
		}
		if (at-before)%2 == 0 {
			return at
		}
	}
}
