package embedding

import (
	"bytes"
	"encoding/base64"

	openai "github.com/sashabaranov/go-openai"
)

// cutVectors takes the vectors out of an answer: encoding/json reads every byte of them several times over, which
// costs more than all else that a request does. It knows the usual form only, "data" with objects of "object",
// "index" and "embedding" in base64, at most so many. rest is the answer with an empty list, for encoding/json to read and to
// judge. Where it is not ok, encoding/json must read the answer as it is.
func cutVectors(body []byte, most int) (vectors []openai.Embedding, rest []byte, ok bool) {
	head, list, found := bytes.Cut(body, []byte(`"data"`))
	if !found || !inObject(head) {
		return nil, nil, false
	}
	s := scanner{in: list}
	vectors = s.vectors(most)
	if s.failed || !plain(head) || !plain(s.in) {
		return nil, nil, false
	}
	rest = make([]byte, 0, len(head)+len(`"data":[]`)+len(s.in))
	return vectors, append(append(append(rest, head...), `"data":[]`...), s.in...), true
}

// inObject reports that the members of the outermost object stand where head ends.
func inObject(head []byte) bool {
	depth, quoted := 0, false
	for _, c := range head {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth <= 0 && !space(c) {
			return false
		}
	}
	return depth == 1 && !quoted
}

// plain reports that a part of an answer has no escapes, and no second list under a name that encoding/json takes
// for the same.
func plain(part []byte) bool {
	return bytes.IndexByte(part, '\\') < 0 && !bytes.Contains(bytes.ToLower(part), []byte(`"data"`))
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// scanner reads JSON from the front of its input. Once failed it stays so, and what it returns means nothing.
type scanner struct {
	in      []byte
	failed  bool
	scratch []byte
}

// next is the next byte that is no white space, 0 at the end.
func (s *scanner) next() byte {
	for len(s.in) > 0 && space(s.in[0]) {
		s.in = s.in[1:]
	}
	if len(s.in) == 0 {
		return 0
	}
	return s.in[0]
}

// skip passes a byte if it is the next.
func (s *scanner) skip(c byte) bool {
	if s.next() != c {
		return false
	}
	s.in = s.in[1:]
	return true
}

func (s *scanner) expect(c byte) {
	if !s.skip(c) {
		s.failed = true
	}
}

// vectors reads the colon and the list.
func (s *scanner) vectors(most int) []openai.Embedding {
	vectors := make([]openai.Embedding, 0, most)
	s.expect(':')
	s.expect('[')
	if s.skip(']') {
		return vectors
	}
	for !s.failed && len(vectors) < most {
		vectors = append(vectors, s.item())
		if s.skip(']') {
			return vectors
		}
		s.expect(',')
	}
	s.failed = true
	return nil
}

// item reads an object whose members are there once.
func (s *scanner) item() (e openai.Embedding) {
	var object, index, embedding bool
	s.expect('{')
	for !s.failed {
		name := string(s.text())
		s.expect(':')
		switch {
		case name == "object" && !object:
			object, e.Object = true, string(s.text())
		case name == "index" && !index:
			index, e.Index = true, s.number()
		case name == "embedding" && !embedding:
			embedding, e.Embedding = true, s.vector()
		default:
			s.failed = true
		}
		if s.skip('}') {
			break
		}
		s.expect(',')
	}
	s.failed = s.failed || !index || !embedding
	return e
}

// quoted returns what stands in quotes, up to the next one.
func (s *scanner) quoted() []byte {
	s.expect('"')
	end := bytes.IndexByte(s.in, '"')
	if s.failed || end < 0 {
		s.failed = true
		return nil
	}
	text := s.in[:end]
	s.in = s.in[end+1:]
	return text
}

// text reads a string of plain ASCII.
func (s *scanner) text() []byte {
	text := s.quoted()
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			s.failed = true
		}
	}
	return text
}

// maxDigits of an index: far from the end of an int.
const maxDigits = 9

func (s *scanner) number() (n int) {
	s.next()
	digits := 0
	for ; digits < len(s.in) && s.in[digits] >= '0' && s.in[digits] <= '9' && digits <= maxDigits; digits++ {
		n = 10*n + int(s.in[digits]-'0')
	}
	if digits == 0 || digits > maxDigits || digits > 1 && s.in[0] == '0' {
		s.failed = true
	}
	s.in = s.in[digits:]
	return n
}

// vector reads little-endian floats in base64.
func (s *scanner) vector() []float32 {
	text := s.quoted()
	full := base64.StdEncoding.DecodedLen(len(text))
	if cap(s.scratch) < full {
		s.scratch = make([]byte, full)
	}
	n, err := base64.StdEncoding.Decode(s.scratch[:full], text)
	// The decoder passes over line ends, which JSON has not within a string: the vector would be too short then.
	if err != nil || len(text)%4 != 0 || n < full-2 {
		s.failed = true
		return nil
	}
	v, err := DecodeVector(s.scratch[:n])
	s.failed = s.failed || err != nil
	return v
}
