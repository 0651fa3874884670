package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// Command is the hidden argument that makes a binary a worker.
const Command = "__parse"

// What a worker is asked to do.
const (
	opParse  = "parse"
	opUnlock = "unlock" // give the document without its protection
	opWarm   = "warm"   // fill the cache of the PDF engine
)

// request is what the parent sends first; Size bytes of the document follow.
type request struct {
	Op          string       `json:"op"`
	Size        int64        `json:"size"`
	ContentType string       `json:"contentType,omitempty"`
	Name        string       `json:"name,omitempty"`
	Title       string       `json:"title,omitempty"`
	Password    string       `json:"password,omitempty"`
	Limits      parse.Limits `json:"limits"`
	CacheDir    string       `json:"cacheDir,omitempty"`
	Light       bool         `json:"light,omitempty"`
	Recognise   bool         `json:"recognise,omitempty"` // images may be sent back, one at a time, to be read
}

// frame is what the child sends, one kind of content each.
type frame struct {
	Progress bool            `json:"progress,omitempty"`
	Text     string          `json:"text,omitempty"`
	Paths    [][]string      `json:"paths,omitempty"` // heading paths, numbered on from those before
	Blocks   []wireBlock     `json:"blocks,omitempty"`
	Image    []byte          `json:"image,omitempty"` // the child waits for an answer
	Data     []byte          `json:"data,omitempty"`  // of opUnlock
	Fail     *messages.Error `json:"fail,omitempty"`
	End      *end            `json:"end,omitempty"`
}

// wireBlock is a block whose heading path is a number; 0 is none.
type wireBlock struct {
	parse.Block
	Path int `json:"path,omitempty"`
}

// end closes a document; after a Fail too.
type end struct {
	Title     string   `json:"title,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Pages     int      `json:"pages,omitempty"`
	Format    string   `json:"format,omitempty"`
	Charset   string   `json:"charset,omitempty"`
	Engine    string   `json:"engine,omitempty"`
	Missing   []string `json:"missing,omitempty"`  // limits that this system does not have
	PeakBytes int64    `json:"peak,omitempty"`     // most memory the process held so far
	CPUMillis int64    `json:"cpu,omitempty"`      // processor time of the process so far
	Reusable  bool     `json:"reusable,omitempty"` // the process can take another document
}

// answer is the text of an image, or why there is none.
type answer struct {
	Text  string          `json:"text,omitempty"`
	Fail  *messages.Error `json:"fail,omitempty"`
	Error string          `json:"error,omitempty"` // not the document's fault
}

// writeMessage sends v with its length in front.
func writeMessage(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body))) //nolint:gosec // bounded by what callers put in
	if _, err := w.Write(append(head[:], body...)); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// readMessage takes what writeMessage sent, of at most most bytes. io.EOF: nothing came.
func readMessage(r io.Reader, v any, most int64) (size int64, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	size = int64(binary.BigEndian.Uint32(head[:]))
	if size > most {
		return size, errTooLong
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return size, fmt.Errorf("read frame: %w", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return size, fmt.Errorf("decode frame: %w", err)
	}
	return size, nil
}
