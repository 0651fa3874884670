package corpus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Kinds of files.
const (
	KindOK        = "ok"        // must be read whole
	KindEncrypted = "encrypted" // must be read with its password, and be refused without
	KindScanned   = "scanned"   // has no text
	KindDamaged   = "damaged"   // may fail, must harm nothing
)

// Expectation is one line of expect.jsonl.
type Expectation struct {
	File     string      `json:"file"` // below the folder
	Kind     string      `json:"kind"`
	Must     []string    `json:"must_contain"`
	MustNot  []string    `json:"must_not_contain"`
	Pages    int         `json:"pages"` // 0: not known
	Password string      `json:"password"`
	Where    []Fact      `json:"where"`
	Order    [][2]string `json:"order"`
}

// Fact says where a phrase stands; what is not given does not matter.
type Fact struct {
	Phrase     string   `json:"phrase"`
	Page       int      `json:"page"`
	Slide      int      `json:"slide"`
	Sheet      string   `json:"sheet"`
	Chapter    string   `json:"chapter"`
	Attachment string   `json:"attachment"`
	Heading    []string `json:"heading"` // the end of the path
	Block      string   `json:"block"`
}

// Format is the folder of a file, or what hostile files pretend to be.
func (e Expectation) Format() string {
	dir, _ := filepath.Split(e.File)
	if dir == "" {
		return filepath.Ext(e.File)
	}
	return filepath.Clean(dir)
}

// Load reads expect.jsonl of a folder.
func Load(dir string) ([]Expectation, error) {
	f, err := os.Open(filepath.Join(dir, "expect.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("open expectations: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	var out []Expectation
	lines := bufio.NewScanner(f)
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var e Expectation
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d of expect.jsonl: %w", len(out)+1, err)
		}
		out = append(out, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read expect.jsonl: %w", err)
	}
	return out, nil
}
