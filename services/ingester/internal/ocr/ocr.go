// Package ocr has the text in images read by a command that the operator names, such as tesseract.
//
// Nothing is read unless one is configured. The command is not run by a shell; it gets one image file, an
// environment of nothing but PATH and a locale, a process group of its own, and limits on time, processor
// time, memory and output. It runs beside the service, not in the process that reads the document: that
// one may start none.
package ocr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Input stands in a command line for the path of the image.
const Input = "{input}"

// Config names the command and what it may take. A zero limit takes its default.
type Config struct {
	Line        string        // words, quoted with ' or " where they hold spaces; one of them has Input in it
	Timeout     time.Duration // for one image; 0: 60 s
	OutputBytes int           // of text for one image; 0: 1 MiB
	MemoryBytes int64         // address space; 0: 4 GiB
}

// Command reads images. Safe for concurrent use.
type Command struct {
	words []string
	cfg   Config
}

// New checks a configuration.
func New(cfg Config) (*Command, error) {
	words, err := split(cfg.Line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || !strings.Contains(strings.Join(words[1:], " "), Input) {
		return nil, fmt.Errorf("a command and %s among its arguments are needed", Input)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.OutputBytes == 0 {
		cfg.OutputBytes = 1 << 20
	}
	if cfg.MemoryBytes == 0 {
		cfg.MemoryBytes = 4 << 30
	}
	return &Command{words: words, cfg: cfg}, nil
}

var errQuote = errors.New("a quote is not closed")

// split cuts a line into words as a shell would, without its variables and substitutions.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errQuote
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// Recognise gives the text an image shows; "" when the command finds none. Errors that belong to the
// image are *messages.Error; a command that cannot be started is none of its fault.
func (c *Command) Recognise(ctx context.Context, image []byte) (string, error) {
	dir, err := os.MkdirTemp("", "weir-ocr-*")
	if err != nil {
		return "", fmt.Errorf("make room for OCR: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the system's temporary directory
	file := filepath.Join(dir, "image"+extension(image))
	if err := os.WriteFile(file, image, 0o600); err != nil {
		return "", fmt.Errorf("write image for OCR: %w", err)
	}
	return c.run(ctx, dir, file)
}

func (c *Command) run(ctx context.Context, dir, file string) (string, error) {
	timed, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	args := make([]string, len(c.words)-1)
	for i, w := range c.words[1:] {
		args[i] = strings.ReplaceAll(w, Input, file)
	}
	out := &bounded{most: c.cfg.OutputBytes, over: cancel}
	cmd := exec.CommandContext(timed, c.words[0], args...) //nolint:gosec // the operator's own command
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "OMP_THREAD_LIMIT=1", "HOME=" + dir, "TMPDIR=" + dir}
	cmd.Stdout = out
	cmd.WaitDelay = 5 * time.Second
	group(cmd)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start OCR command: %w", err)
	}
	restrict(cmd.Process.Pid, c.cfg)
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("recognise text: %w", ctx.Err())
	case out.full:
		return "", messages.Errorf(messages.CodeParseLimit, "text of one image is over the OCR limit of %d bytes", c.cfg.OutputBytes)
	case timed.Err() != nil:
		return "", messages.Errorf(messages.CodeParseLimit, "OCR of one image took longer than the limit of %s", c.cfg.Timeout)
	case err != nil:
		return "", messages.Errorf(messages.CodeNoText, "the OCR command could not read an image of the document (%s)", err)
	}
	return strings.ToValidUTF8(out.buf.String(), ""), nil
}

// bounded keeps output up to a size, and has the command stopped beyond.
type bounded struct {
	buf  bytes.Buffer
	most int
	full bool
	over func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.most {
		b.full = true
		b.over()
		return len(p), nil
	}
	return b.buf.Write(p)
}

// extension is the one of an image's format, for commands that go by names.
func extension(image []byte) string {
	for _, f := range []struct{ magic, ext string }{
		{"\x89PNG", ".png"}, {"\xff\xd8\xff", ".jpg"}, {"GIF8", ".gif"}, {"II*\x00", ".tif"}, {"MM\x00*", ".tif"}, {"BM", ".bmp"}, {"RIFF", ".webp"},
	} {
		if bytes.HasPrefix(image, []byte(f.magic)) {
			return f.ext
		}
	}
	return ""
}
