package parse

import (
	"bytes"
	"context"
	"strings"
)

func mhtmlFormat() format {
	return format{
		name:       "mhtml",
		mediaTypes: []string{"multipart/related", "application/x-mimearchive"},
		extensions: []string{".mht", ".mhtml"},
		binary:     true, // parts have charsets of their own
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      sniffPage,
		parse:      parseMHTML,
	}
}

// sniffPage recognises a page that a browser saved as a mail.
func sniffPage(data []byte) bool {
	if !sniffMail(data) {
		return false
	}
	head := bytes.ToLower(data[:min(len(data), 4<<10)])
	return bytes.Contains(head, []byte("\nsnapshot-content-location:")) || bytes.Contains(head, []byte("saved by ")) ||
		bytes.Contains(head, []byte("type=\"text/html\"")) && bytes.Contains(head, []byte("\ncontent-location:"))
}

// parseMHTML reads the page that the archive was made of: the first HTML part. Images and frames are
// left out.
func parseMHTML(ctx context.Context, s source, b *builder) error {
	message := readPart(s.data)
	page, ok := firstPage(message, 0)
	if !ok {
		return damaged("the archive holds no HTML page")
	}
	data := page.content()
	charset := page.params["charset"]
	if charset == "" {
		charset = pageCharset(data)
	}
	text, err := readable(data, charset)
	if err != nil {
		return err
	}
	s.text, b.charset = text.text, text.charset
	if err := parsePage(ctx, s, b, nil); err != nil {
		return err
	}
	if b.title == "" {
		b.title = message.said("subject")
	}
	return nil
}

func firstPage(p mimePart, depth int) (mimePart, bool) {
	if p.media == "text/html" || p.media == "application/xhtml+xml" {
		return p, true
	}
	if !strings.HasPrefix(p.media, "multipart/") || depth > maxMailDepth {
		return p, false
	}
	for _, raw := range p.parts(maxMailParts) {
		if page, ok := firstPage(readPart(raw), depth+1); ok {
			return page, true
		}
	}
	return p, false
}
