package messages

import (
	"strconv"
	"strings"
)

// Ref says which version of which document a work message is for. Every later write is fenced on
// it: work of a deleted knowledge base or an overtaken version changes nothing.
type Ref struct {
	Tenant     string `json:"tenant"`
	KB         string `json:"kb"`
	KBID       int64  `json:"kbId"` // immutable, so late work never lands in a new KB of the same name
	Generation int64  `json:"generation"`
	Subspace   string `json:"subspace"`
	DocID      string `json:"docId"`
	DocKey     int64  `json:"docKey"` // primary key of the document's row
	Version    int64  `json:"version"`
	Run        int    `json:"run"` // raised when work is published again on purpose
	// Build marks work of a job: the live version is built in a generation other than by its own submit. It
	// changes no status and tells nobody.
	Build bool `json:"build,omitempty"`
}

// MsgID is the deduplication id of a message of a stage about this version.
func (r Ref) MsgID(stage string, part int) string {
	run := strconv.Itoa(r.Run)
	if r.Build {
		run = "b" + run
	}
	return strings.Join([]string{
		r.Tenant, itoa(r.KBID), itoa(r.Generation), r.Subspace, DocToken(r.DocID), itoa(r.Version), stage, strconv.Itoa(part), run,
	}, "/")
}

// Validate checks that a received reference is whole.
func (r Ref) Validate() error {
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"tenant", r.Tenant == ""},
		{"kb", r.KB == ""},
		{"kbId", r.KBID <= 0},
		{"generation", r.Generation <= 0},
		{"docId", r.DocID == ""},
		{"docKey", r.DocKey <= 0},
		{"version", r.Version <= 0},
	} {
		if f.missing {
			return Invalid(f.name, "is missing")
		}
	}
	return nil
}

// Space identifies a vector space: two vectors may be compared only when every field is equal. The
// endpoint that computes them is no part of it.
type Space struct {
	Model         string `json:"model"`
	Dims          int    `json:"dims"`   // 1 to 4000
	Metric        string `json:"metric"` // cosine, l2 or ip
	Normalized    bool   `json:"normalized"`
	QueryPrefix   string `json:"queryPrefix"`
	PassagePrefix string `json:"passagePrefix"`
}

// PassageText is the exact string sent to the model for a chunk. context is the title and the heading
// path, a line each; it may be empty.
func (s Space) PassageText(context, text string) string {
	if context == "" {
		return s.PassagePrefix + text
	}
	return s.PassagePrefix + context + "\n" + text
}

// ParseWork asks for a stored version to be parsed, chunked and staged.
type ParseWork struct {
	Ref
	// SubmitID and Source are those of the submit that made the version, for its Indexing event; empty
	// when work is published again.
	SubmitID string `json:"submitId,omitempty"`
	Source   string `json:"source,omitempty"`
}

// EmbedWork asks for the vectors of some chunks of a version. Exactly one IndexWork of the same part
// answers it. The message and its answer stay under MaxWorkBytes.
type EmbedWork struct {
	Ref
	Space  Space
	Part   int // from 0
	Parts  int // how many this run of the version has
	Chunks []EmbedChunk
}

// EmbedChunk is one text to embed: the exact string for the model, prefix and context included.
type EmbedChunk struct {
	Ordinal int
	Hash    []byte // SHA-256 of Text
	Text    string
}

// Validate checks a received message.
func (w *EmbedWork) Validate() error {
	if err := w.Ref.Validate(); err != nil {
		return err
	}
	if len(w.Chunks) == 0 {
		return Invalid("chunks", "is empty")
	}
	if w.Space.Dims <= 0 || w.Space.Model == "" {
		return Invalid("space", "names no model or dimension")
	}
	return nil
}

// IndexWork carries vectors of a version, or none when everything is staged already.
type IndexWork struct {
	Ref
	Part    int
	Parts   int
	Tokens  int // tokens the provider counted
	Vectors []IndexVector
}

// IndexVector is the vector of one chunk: float32, little endian.
type IndexVector struct {
	Ordinal int
	Vector  []byte
}

// EmbedRequest asks weir.internal.embed for query vectors: at most 64 texts, prefixes not included.
type EmbedRequest struct {
	Space Space    `json:"space"`
	Texts []string `json:"texts"`
}

// EmbedReply holds one vector a text, float32 little endian.
type EmbedReply struct {
	Vectors [][]byte `json:"vectors"`
	Tokens  int      `json:"tokens"`
}

// Message types, the msg-type header.
const (
	TypeSubmit = "weir.submit.v1"
	TypeDelete = "weir.delete.v1"
	TypeParse  = "weir.parse.v1"
	TypeEmbed  = "weir.embed.v1"
	TypeIndex  = "weir.index.v1"
	TypeEvent  = "weir.event.v1"
)

// StageOfMsgID returns the stage inside a Ref.MsgID, "" when it is none.
func StageOfMsgID(id string) string {
	parts := strings.Split(id, "/")
	if len(parts) != 9 {
		return ""
	}
	return parts[6]
}
