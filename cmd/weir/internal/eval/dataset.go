package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-project/weir/pkg/messages"
)

// maxLine bounds a line of any of the files, in bytes.
const maxLine = 64 << 20

// Doc is a document of a corpus.
type Doc struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// empty reports that there is nothing to find in the document.
func (d Doc) empty() bool {
	return !strings.ContainsFunc(d.Title+d.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// Query is a query of a set.
type Query struct {
	ID   string `json:"_id"`
	Text string `json:"text"`
}

// Qrels are the judgments: query to document to grade.
type Qrels map[string]map[string]int

// Set is a test collection without its corpus, which is read on its own.
type Set struct {
	Name    string // of the folder
	Dir     string
	Queries []Query
	Qrels   Qrels
	Docs    int    // of the corpus
	Empty   int    // of them, without a letter or digit: they cannot be indexed
	Hash    string // of the corpus content
}

// Open reads queries and judgments, and the corpus once for its size and hash.
func Open(dir string) (*Set, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open set %s: %w", dir, err)
	}
	s := &Set{Name: filepath.Base(abs), Dir: dir}
	if s.Qrels, err = readQrels(filepath.Join(dir, "qrels.tsv")); err != nil {
		return nil, fmt.Errorf("open set %s: %w", dir, err)
	}
	if err := s.readQueries(); err != nil {
		return nil, fmt.Errorf("open set %s: %w", dir, err)
	}
	sum := sha256.New()
	err = s.Corpus(func(d Doc) error {
		s.Docs++
		if d.empty() {
			s.Empty++
		}
		for _, field := range []string{d.ID, d.Title, d.Text} {
			fmt.Fprintf(sum, "%d:%s", len(field), field)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open set %s: %w", dir, err)
	}
	if s.Docs == 0 {
		return nil, fmt.Errorf("open set %s: the corpus is empty", dir)
	}
	s.Hash = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// hashLetters is how much of the corpus hash a knowledge base's name holds.
const hashLetters = 12

var notName = regexp.MustCompile(`[^a-z0-9_-]+`)

// KBName is the name of the knowledge base of the set: its own name, what tells the way of chunking, and the
// corpus hash, in letters that a name may have.
func (s *Set) KBName(chunked bool) string {
	suffix := "-" + s.Hash[:hashLetters]
	if chunked {
		suffix = "-chunks" + suffix
	}
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(s.Name), "-"), "-")
	if name == "" {
		name = "set"
	}
	return name[:min(len(name), messages.MaxNameBytes-len(suffix))] + suffix
}

// Corpus calls each with every document of corpus.jsonl or corpus.jsonl.gz, in order.
func (s *Set) Corpus(each func(Doc) error) error {
	return readLines(filepath.Join(s.Dir, "corpus.jsonl"), func(line []byte) error {
		var d Doc
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		if d.ID == "" {
			return errors.New("a document without _id")
		}
		return each(d)
	})
}

func (s *Set) readQueries() error {
	return readLines(filepath.Join(s.Dir, "queries.jsonl"), func(line []byte) error {
		var q Query
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if q.ID == "" || strings.ContainsAny(q.ID, " \t") {
			return fmt.Errorf("query id %q is empty or holds a space", q.ID)
		}
		s.Queries = append(s.Queries, q)
		return nil
	})
}

// readLines calls each with every line of a file, or of the file with .gz behind its name.
func readLines(path string, each func([]byte) error) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		if zipped, zerr := os.Open(path + ".gz"); zerr == nil {
			f, err, path = zipped, nil, path+".gz"
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func readQrels(path string) (Qrels, error) {
	q, first := Qrels{}, true
	err := readLines(path, func(line []byte) error {
		parts := strings.Split(string(line), "\t")
		if len(parts) != 3 {
			return fmt.Errorf("want 3 tab-separated columns, got %d", len(parts))
		}
		header := first && parts[0] == "query-id"
		if first = false; header {
			return nil
		}
		grade, err := strconv.Atoi(parts[2])
		if err != nil {
			return fmt.Errorf("the grade %q is no integer", parts[2])
		}
		judged := q[parts[0]]
		if judged == nil {
			judged = map[string]int{}
			q[parts[0]] = judged
		}
		if _, twice := judged[parts[1]]; twice {
			return fmt.Errorf("%s %s is judged twice", parts[0], parts[1])
		}
		judged[parts[1]] = grade
		return nil
	})
	return q, err
}
