package parse

import (
	"bytes"
	"context"

	"github.com/weir-project/weir/pkg/messages"
)

func imageFormat() format {
	return format{
		name:       "image",
		mediaTypes: []string{"image/png", "image/jpeg", "image/tiff", "image/gif", "image/bmp", "image/webp"},
		extensions: []string{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp"},
		binary:     true,
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      isImage,
		parse:      parseImage,
	}
}

// isImage knows images by their first bytes. The short signs are words too: text has no NUL.
func isImage(data []byte) bool {
	for _, sign := range []string{"\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a", "II*\x00", "MM\x00*"} {
		if bytes.HasPrefix(data, []byte(sign)) {
			return true
		}
	}
	const webp = 8
	return bytes.HasPrefix(data, []byte("BM")) && bytes.IndexByte(data[:min(len(data), 64)], 0) > 0 ||
		bytes.HasPrefix(data, []byte("RIFF")) && len(data) > webp && bytes.HasPrefix(data[webp:], []byte("WEBP"))
}

// parseImage takes the text that OCR sees.
func parseImage(ctx context.Context, s source, b *builder) error {
	if s.parser.Recognise == nil {
		return messages.Errorf(messages.CodeNoText, "the document is an image: submit a file with text, or set up OCR")
	}
	b.engine = EngineOCR
	text, err := s.parser.Recognise(ctx, s.data)
	if err != nil {
		return err
	}
	for _, paragraph := range paragraphsOf(normalise(text)) {
		if err := b.add(part{kind: KindParagraph, text: paragraph}); err != nil {
			return err
		}
	}
	if !hasWord(b.text.String()) {
		return messages.Errorf(messages.CodeNoText, "OCR found no text in the image")
	}
	return nil
}

// paragraphsOf cuts at empty lines.
func paragraphsOf(text string) []string {
	var out []string
	var paragraph bytes.Buffer
	for line := range bytes.Lines([]byte(text)) {
		if len(bytes.TrimSpace(line)) == 0 {
			out = append(out, paragraph.String())
			paragraph.Reset()
			continue
		}
		paragraph.Write(line)
	}
	return append(out, paragraph.String())
}
