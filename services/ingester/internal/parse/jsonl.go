package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

func jsonlFormat() format {
	return format{
		name:       "jsonl",
		mediaTypes: []string{"application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/ndjson"},
		extensions: []string{".jsonl", ".ndjson"},
		maxBytes:   func(l Limits) int { return l.TextFile },
		sniff:      sniffJSONL,
		parse:      parseJSONL,
	}
}

// sniffJSONL wants two lines that are objects each.
func sniffJSONL(data []byte) bool {
	first, rest, more := bytes.Cut(bytes.TrimSpace(trimUTF8Mark(data)), []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	return more && object(first) && object(second)
}

func object(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 1 && text[0] == '{' && json.Valid(text)
}

// parseJSONL reads a file of JSON lines as one document, a block a line. A broken line is reported and
// kept as it is; a file without one good line is damaged.
func parseJSONL(ctx context.Context, s source, b *builder) error {
	good := 0
	for i, l := range strings.Split(s.text, "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		text, err := flatLine(ctx, s.limits, l)
		if err != nil {
			if !brokenLine(err) {
				return err
			}
			b.warn(fmt.Sprintf("line %d is no JSON", i+1))
			text = l
		} else {
			good++
		}
		if err := b.add(part{kind: KindParagraph, text: text, line: i + 1, end: i + 1}); err != nil {
			return err
		}
	}
	if good == 0 && len(b.blocks) > 0 {
		return damaged("no line is JSON")
	}
	return nil
}

func flatLine(ctx context.Context, l Limits, text string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	f := &flattener{ctx: ctx, decoder: decoder, depth: l.depth(jsonDepth), most: l.TextBytes}
	if err := f.value("", 0); err != nil {
		if brokenLine(err) {
			return "", err
		}
		return "", jsonError(err, l)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", io.ErrUnexpectedEOF
	}
	return f.out.String(), nil
}

func brokenLine(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
