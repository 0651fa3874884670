package parse

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"path"
	"strings"
)

// mimePart is one part of a mail: the headers and the encoded body, both slices of the file.
type mimePart struct {
	headers []mimeHeader
	body    []byte
	media   string // lower case, "text/plain" where nothing is said
	params  map[string]string
}

type mimeHeader struct {
	name  string // lower case
	value string // unfolded, still encoded
}

const (
	maxHeaders    = 1000
	maxHeaderText = 64 << 10 // bytes of one header
)

// readPart splits headers from body. Lines that are no header are passed over: real mail has them.
func readPart(data []byte) mimePart {
	p := mimePart{media: "text/plain"}
	for len(data) > 0 {
		l, rest := cutLine(data)
		data = rest
		if len(l) == 0 {
			break
		}
		n := len(p.headers)
		if (l[0] == ' ' || l[0] == '\t') && n > 0 {
			if h := &p.headers[n-1]; len(h.value)+len(l) < maxHeaderText {
				h.value += " " + strings.TrimSpace(string(l))
			}
			continue
		}
		name, value, ok := bytes.Cut(l, []byte(":"))
		if ok && n < maxHeaders && len(value) < maxHeaderText {
			p.headers = append(p.headers, mimeHeader{strings.ToLower(strings.TrimSpace(string(name))), strings.TrimSpace(string(value))})
		}
	}
	p.body = data
	if value := p.header("content-type"); value != "" {
		media, params, err := mime.ParseMediaType(value)
		if err != nil { // what stands before the parameters is still good
			media, _, _ = strings.Cut(value, ";")
		}
		p.media, p.params = strings.ToLower(strings.TrimSpace(media)), params
	}
	return p
}

func cutLine(data []byte) (line, rest []byte) {
	at := bytes.IndexByte(data, '\n')
	if at < 0 {
		return bytes.TrimSuffix(data, []byte("\r")), nil
	}
	return bytes.TrimSuffix(data[:at], []byte("\r")), data[at+1:]
}

func (p mimePart) header(name string) string {
	for _, h := range p.headers {
		if h.name == name {
			return h.value
		}
	}
	return ""
}

// said is a header for people: encoded words decoded, in whatever charset the rest is.
func (p mimePart) said(name string) string {
	value := p.header(name)
	decoder := mime.WordDecoder{CharsetReader: func(charset string, in io.Reader) (io.Reader, error) {
		enc, _ := lookupCharset(strings.ToLower(charset))
		if enc == nil {
			return nil, damaged("charset %s is not known", clip(charset, 40))
		}
		return enc.NewDecoder().Reader(in), nil
	}}
	if text, err := decoder.DecodeHeader(value); err == nil {
		value = text
	}
	if d, err := decode([]byte(value), ""); err == nil {
		value = d.text
	}
	return collapse(value)
}

// disposition is inline or attachment, "" when not said, and the file name, "" without one.
func (p mimePart) disposition() (kind, name string) {
	kind, params, err := mime.ParseMediaType(p.header("content-disposition"))
	if err != nil {
		kind, _, _ = strings.Cut(p.header("content-disposition"), ";")
	}
	name = params["filename"]
	if name == "" {
		name = p.params["name"]
	}
	decoded := mimePart{headers: []mimeHeader{{"name", name}}}
	name = path.Base(strings.ReplaceAll(decoded.said("name"), `\`, "/"))
	if name == "." || name == "/" {
		name = ""
	}
	return strings.ToLower(strings.TrimSpace(kind)), clip(name, 200)
}

// parts splits a multipart body at its boundary. What stands before the first and behind the last one is
// for old programs and left out; a body that is cut off gives what there is.
func (p mimePart) parts(most int) [][]byte {
	boundary := p.params["boundary"]
	if boundary == "" {
		return nil
	}
	mark := []byte("--" + boundary)
	var out [][]byte
	begin := -1
	for at := 0; at < len(p.body) && len(out) < most; {
		found := bytes.Index(p.body[at:], mark)
		if found < 0 {
			break
		}
		from := at + found
		at = from + len(mark)
		if from > 0 && p.body[from-1] != '\n' {
			continue
		}
		l, rest := cutLine(p.body[at:])
		tail := strings.TrimRight(string(l[:min(len(l), 80)]), " \t")
		if tail != "" && tail != "--" { // a longer boundary that begins the same
			continue
		}
		if begin >= 0 {
			out = append(out, bytes.TrimSuffix(bytes.TrimSuffix(p.body[begin:from], []byte("\n")), []byte("\r")))
		}
		at = len(p.body) - len(rest)
		begin = at
		if tail == "--" {
			return out
		}
	}
	if begin >= 0 && begin < len(p.body) && len(out) < most {
		out = append(out, p.body[begin:])
	}
	return out
}

// content is the body without its transfer encoding. Broken encodings give what can be read.
func (p mimePart) content() []byte {
	switch strings.ToLower(strings.TrimSpace(p.header("content-transfer-encoding"))) {
	case "base64":
		return lenientBase64(p.body)
	case "quoted-printable":
		return quotedPrintable(p.body)
	}
	return p.body
}

func lenientBase64(data []byte) []byte {
	kept := make([]byte, 0, len(data))
	for _, c := range data {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			kept = append(kept, c)
		}
	}
	if len(kept)%4 == 1 {
		kept = kept[:len(kept)-1]
	}
	n, err := base64.RawStdEncoding.Decode(kept, kept)
	if err != nil {
		return kept[:n]
	}
	return kept[:n]
}

// quotedPrintable decodes; what is no escape stays as it is.
func quotedPrintable(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			end = len(data)
		}
		l := data[:end]
		data = data[end:]
		text := bytes.TrimRight(l, " \t\r\n")
		soft := bytes.HasSuffix(text, []byte("="))
		if soft {
			text = text[:len(text)-1]
		}
		for i := 0; i < len(text); i++ {
			if text[i] == '=' && i+2 < len(text)+0 && hexDigit(text[i+1]) >= 0 && hexDigit(text[i+2]) >= 0 {
				out = append(out, byte(hexDigit(text[i+1])<<4|hexDigit(text[i+2])))
				i += 2
				continue
			}
			out = append(out, text[i])
		}
		if !soft && end > 0 && l[len(l)-1] == '\n' {
			out = append(out, '\n')
		}
	}
	return out
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
