package worker

import (
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// send leaves a frame in the buffer.
func (s *server) send(f frame) error { return writeMessage(s.out, &f) }

// last sends what was not sent yet, and the end.
func (s *server) last(e end) error {
	if err := s.send(frame{Kind: frameEnd, End: e}); err != nil {
		return err
	}
	return s.out.Flush()
}

// progress is told at most so often, and not at once: a small document is read before.
func (s *server) progress() {
	const often = 20 * time.Millisecond
	now := time.Now()
	if now.Sub(s.told) < often {
		return
	}
	s.told = now
	if s.send(frame{Kind: frameProgress}) != nil || s.out.Flush() != nil {
		os.Exit(1) // nobody listens any more
	}
}

// document sends text and blocks in frames of bounded size.
func (s *server) document(doc parse.Document) error {
	const textBytes, blocks = 256 << 10, 512
	for rest := doc.Text; rest != ""; {
		n := min(len(rest), textBytes)
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n--
		}
		if err := s.send(frame{Kind: frameText, Text: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for part := range slices.Chunk(doc.Blocks, blocks) {
		if err := s.send(frame{Kind: frameBlocks, Blocks: part}); err != nil {
			return err
		}
	}
	return nil
}
