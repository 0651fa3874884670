package embedding

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Metrics by which vectors of a space are compared.
const (
	MetricCosine = "cosine"
	MetricL2     = "l2"
	MetricIP     = "ip"
)

// Bounds of a space.
const (
	MaxDims        = 4000 // what a half-precision vector index holds
	MaxModelBytes  = 200
	MaxPrefixBytes = 1000
)

// Space identifies what vectors mean. Two vectors may be compared only when their spaces are equal.
// The zero value is not valid; DefaultSpace is the space of the built-in model.
type Space struct {
	Model  string `json:"model"` // as the server knows it
	Dims   int    `json:"dims"`
	Metric string `json:"metric"` // MetricCosine, MetricL2 or MetricIP
	// Normalized spaces hold unit vectors: what the server sends is scaled to length 1.
	Normalized bool `json:"normalized"`
	// QueryPrefix and PassagePrefix go before the text, as the model was trained.
	QueryPrefix   string `json:"queryPrefix,omitempty"`
	PassagePrefix string `json:"passagePrefix,omitempty"`
}

// DefaultSpace is the space of multilingual-e5-small, which set-up installs.
func DefaultSpace() Space { return SpaceOf("multilingual-e5-small", 384) }

// SpaceOf returns the usual space of a model: cosine over unit vectors, with the prefixes the model
// family is known to need.
func SpaceOf(model string, dims int) Space {
	f := familyOf(model)
	return Space{
		Model: model, Dims: dims, Metric: MetricCosine, Normalized: true,
		QueryPrefix: f.query, PassagePrefix: f.passage,
	}
}

// ID is the space as one line, the same on every machine and release:
// "<model>:<dims>:<metric>:<unit|raw>:<12 hexadecimal digits of the prefixes>".
func (s Space) ID() string {
	length := "raw"
	if s.Normalized {
		length = "unit"
	}
	h := sha256.New()
	for _, prefix := range []string{s.QueryPrefix, s.PassagePrefix} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(prefix)))
		h.Write(n[:])
		h.Write([]byte(prefix))
	}
	return fmt.Sprintf("%s:%d:%s:%s:%s", s.Model, s.Dims, s.Metric, length, hex.EncodeToString(h.Sum(nil))[:12])
}

// Validate reports everything wrong with the space, one line a field.
func (s Space) Validate() error {
	var errs []error
	if s.Model == "" || len(s.Model) > MaxModelBytes {
		errs = append(errs, fmt.Errorf("model: must have 1 to %d bytes", MaxModelBytes))
	}
	if s.Dims < 1 || s.Dims > MaxDims {
		errs = append(errs, fmt.Errorf("dims: must be 1 to %d, got %d", MaxDims, s.Dims))
	}
	switch s.Metric {
	case MetricCosine, MetricL2, MetricIP:
	default:
		errs = append(errs, fmt.Errorf("metric: must be cosine, l2 or ip, got %q", s.Metric))
	}
	if len(s.QueryPrefix) > MaxPrefixBytes {
		errs = append(errs, fmt.Errorf("queryPrefix: must have at most %d bytes", MaxPrefixBytes))
	}
	if len(s.PassagePrefix) > MaxPrefixBytes {
		errs = append(errs, fmt.Errorf("passagePrefix: must have at most %d bytes", MaxPrefixBytes))
	}
	return errors.Join(errs...)
}

// PassageText is the exact string sent to the model for a chunk. context is the title and the
// heading path, a line each; it may be empty.
func (s Space) PassageText(context, text string) string {
	if context == "" {
		return s.PassagePrefix + text
	}
	return s.PassagePrefix + context + "\n" + text
}

// QueryText is the exact string sent to the model for a query.
func (s Space) QueryText(text string) string { return s.QueryPrefix + text }

// Hash is the SHA-256 of the exact string sent to the model. Equal hashes in one space mean equal
// vectors.
func Hash(exact string) [sha256.Size]byte { return sha256.Sum256([]byte(exact)) }

// family is what is known of models whose name contains a string.
type family struct {
	contains       string // lower case
	query, passage string
	sendDims       bool // the model shortens its vectors on request
}

// families is searched in order; the first that fits counts.
func families() []family {
	return []family{
		{contains: "e5-mistral"}, // takes instructions, no prefixes
		{contains: "-e5-large-instruct"},
		{contains: "e5-", query: "query: ", passage: "passage: "},
		{contains: "nomic-embed-text", query: "search_query: ", passage: "search_document: "},
		{contains: "text-embedding-3", sendDims: true},
	}
}

func familyOf(model string) family {
	name := strings.ToLower(model)
	for _, f := range families() {
		if strings.Contains(name, f.contains) {
			return f
		}
	}
	return family{}
}
