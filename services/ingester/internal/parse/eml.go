package parse

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

func emlFormat() format {
	return format{
		name:       "eml",
		mediaTypes: []string{"message/rfc822", "application/eml"},
		extensions: []string{".eml"},
		binary:     true, // parts have charsets of their own
		maxBytes:   func(l Limits) int { return l.FileBytes },
		sniff:      sniffMail,
		parse:      parseEML,
	}
}

// sniffMail wants the file to begin with headers, two of them such as only mail has.
func sniffMail(data []byte) bool {
	if bytes.HasPrefix(data, []byte("From ")) { // of a mailbox
		_, data = cutLine(data)
	}
	known, few, sure := 0, 200, false
	for first := true; len(data) > 0 && few > 0; few-- {
		l, rest := cutLine(data)
		data = rest
		if len(l) == 0 {
			return known >= 2
		}
		if l[0] == ' ' || l[0] == '\t' {
			if first {
				return false
			}
			continue
		}
		name, _, ok := bytes.Cut(l, []byte(":"))
		if !ok || len(name) == 0 || len(name) > 80 || bytes.ContainsAny(name, " \t<{") {
			return false
		}
		first = false
		switch strings.ToLower(string(name)) {
		case "message-id", "received", "mime-version", "return-path", "delivered-to", "dkim-signature":
			sure = true
			known++
		case "from", "to", "cc", "date", "subject", "content-type", "reply-to", "sender":
			known++
		}
	}
	return known >= 2 && sure // without a body: settings look like this too
}

// Bounds of a mail.
const (
	maxMailParts   = 1000
	maxMailDepth   = 20 // of multiparts
	maxAttachments = 50
	attachDepth    = 5 // of attachments in attachments
)

// parseEML reads the headers that people read, the text, and the attachments, whose place is their name.
// Of alternatives the plain text is taken, or the HTML where that says nothing.
func parseEML(ctx context.Context, s source, b *builder) error {
	data := s.data
	if bytes.HasPrefix(data, []byte("From ")) {
		_, data = cutLine(data)
		if bytes.Contains(data, []byte("\n\nFrom ")) && bytes.Contains(data, []byte("\nMessage-I")) {
			return unsupported("a mailbox of several messages; submit them one by one")
		}
	}
	m := &mailReader{ctx: ctx, source: s, b: b}
	message := readPart(data)
	b.title = message.said("subject")
	if err := m.headers(message); err != nil {
		return err
	}
	if err := m.part(message, 0); err != nil {
		return err
	}
	return m.attach()
}

type mailReader struct {
	ctx         context.Context
	source      source
	b           *builder
	attachments []attachment
	more        int // attachments beyond the limit
	parts       int
}

type attachment struct {
	name, media string
	data        []byte
}

func (m *mailReader) headers(message mimePart) error {
	var lines []string
	for _, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		if value := message.said(strings.ToLower(name)); value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	return m.b.add(part{kind: KindParagraph, text: strings.Join(lines, "\n")})
}

// part reads a part: its text now, its attachments later.
func (m *mailReader) part(p mimePart, depth int) error {
	if m.parts++; m.parts > maxMailParts || depth > maxMailDepth {
		return limitError("parts of the mail or their nesting", maxMailParts, fmt.Sprintf("parts or %d levels", maxMailDepth))
	}
	if err := m.ctx.Err(); err != nil {
		return err
	}
	kind, name := p.disposition()
	switch {
	case strings.HasPrefix(p.media, "multipart/"):
		return m.multipart(p, depth)
	case kind != "attachment" && name == "" && p.media == "text/html":
		return m.html(p)
	case kind != "attachment" && name == "" && (p.media == "text/plain" || p.media == "text/enriched" || p.media == "message/delivery-status"):
		return m.plain(p)
	}
	m.later(p, name)
	return nil
}

func (m *mailReader) multipart(p mimePart, depth int) error {
	raw := p.parts(maxMailParts)
	if len(raw) == 0 && hasWord(string(p.body[:min(len(p.body), 1<<16)])) { // the boundary is wrong: what is there is text
		m.b.warn("a part of the mail could not be taken apart")
		p.media = "text/plain"
		return m.plain(p)
	}
	parts := make([]mimePart, len(raw))
	for i := range raw {
		parts[i] = readPart(raw[i])
	}
	if p.media == "multipart/alternative" {
		parts = bestAlternative(parts)
	}
	for _, child := range parts {
		if err := m.part(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// bestAlternative keeps the plain text if it says something, else the last form that is text. Forms that
// are no text, such as invitations, stay.
func bestAlternative(parts []mimePart) []mimePart {
	best := -1
	for i, p := range parts {
		if p.media == "text/plain" && hasWord(string(p.content())) {
			best = i
			break
		}
		if p.media == "text/html" || strings.HasPrefix(p.media, "multipart/") {
			best = i
		}
	}
	var out []mimePart
	for i, p := range parts {
		text := p.media == "text/plain" || p.media == "text/html" || strings.HasPrefix(p.media, "multipart/") || p.media == "text/enriched"
		if i == best || !text {
			out = append(out, p)
		}
	}
	return out
}

func (m *mailReader) plain(p mimePart) error {
	text, err := readable(p.content(), p.params["charset"])
	if err != nil {
		m.b.warn("a text of the mail could not be decoded: " + reason(err))
		return nil
	}
	if strings.EqualFold(p.params["format"], "flowed") {
		text.text = unflow(text.text)
	}
	return m.b.addParagraphs(text.text)
}

// unflow joins lines that were only broken for transport: those that end in a space.
func unflow(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\n-- \n", "\n--\n")
	return strings.ReplaceAll(text, " \n", " ")
}

func (m *mailReader) html(p mimePart) error {
	data := p.content()
	charset := p.params["charset"]
	if charset == "" {
		charset = pageCharset(data)
	}
	text, err := readable(data, charset)
	if err != nil {
		m.b.warn("a text of the mail could not be decoded: " + reason(err))
		return nil
	}
	title := m.b.title
	s := m.source
	s.text = text.text
	err = parsePage(m.ctx, s, m.b, nil)
	m.b.title = title
	return err
}

// later keeps an attachment until the text of the mail is read.
func (m *mailReader) later(p mimePart, name string) {
	if len(m.attachments) == maxAttachments {
		m.more++
		return
	}
	data := p.content()
	if name == "" && p.media == "message/rfc822" {
		name = readPart(data).said("subject") + ".eml"
	}
	if name == "" || name == ".eml" {
		name = fmt.Sprintf("attachment %d", len(m.attachments)+1)
	}
	m.attachments = append(m.attachments, attachment{clip(name, 200), p.header("content-type"), data})
}

// attach reads the attachments as documents of their own. One that cannot be read is a warning.
func (m *mailReader) attach() error {
	images := 0
	if m.more > 0 {
		m.b.warn(fmt.Sprintf("the mail has %d attachments more than the %d that are read", m.more, maxAttachments))
	}
	for _, a := range m.attachments {
		err := m.source.child(m.ctx, m.b, a)
		if e, ok := messages.AsError(err); ok {
			if e.Code == messages.CodeNoText && isImage(a.data) {
				images++
				continue
			}
			if e.Code != messages.CodeEmptyDocument {
				m.b.warn(fmt.Sprintf("attachment %s was not read: %s", clip(a.name, 80), e.Message))
			}
		} else if err != nil {
			return err
		}
	}
	if images > 0 {
		m.b.warn(fmt.Sprintf("%d attached images have no text", images))
	}
	return nil
}

func reason(err error) string {
	if e, ok := messages.AsError(err); ok {
		return e.Message
	}
	return "it cannot be read"
}
