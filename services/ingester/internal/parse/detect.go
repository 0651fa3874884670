package parse

import (
	"bytes"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
)

// detected is the format chosen for an input.
type detected struct {
	format   format
	media    string // declared, "" when it says nothing
	charset  string // declared with the media type
	warnings []string
}

// detect chooses the format. Content with a sure sign decides, whatever is declared; then the declared
// type; then the file name; then what text looks like.
func (t table) detect(in Input) (detected, error) {
	media, charset, err := mediaType(in.ContentType)
	if err != nil {
		return detected{}, err
	}
	declared, known := t.formatFor(media, in.Name)
	for _, f := range t {
		if f.binary && f.sniff(in.Data) && !mentioned(f, in.Data, declared, known) {
			return detected{format: f, media: media, warnings: contradiction(declared, known, media, f)}, nil
		}
	}
	if err := foreign(in.Data); err != nil {
		return detected{}, err
	}
	if known && declared.name == imageFormat().name {
		return detected{}, messages.Errorf(messages.CodeUnsupportedMediaType, "declared as an image, the content is none")
	}
	if media != "" && !known {
		return detected{}, messages.Errorf(messages.CodeUnsupportedMediaType, "media type %s is not supported", clip(media, 80))
	}
	out := detected{format: declared, media: media, charset: charset}
	if known && declared.firm {
		return out, nil
	}
	return t.sniffed(in, out, declared, known)
}

// mentioned reports text that only holds the sign of a format: settings that begin like the headers of a
// mail, notes about the inside of PDFs.
func mentioned(f format, data []byte, declared format, known bool) bool {
	switch f.name {
	case "eml", "mhtml":
		return known && declared.firm
	case "pdf":
		head := data[:min(len(data), 1024)]
		return !bytes.HasPrefix(bytes.TrimSpace(trimUTF8Mark(head)), []byte("%PDF-")) && known && !declared.binary &&
			utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
	}
	return false
}

// sniffed lets the look of text decide where the declaration does not settle it.
func (t table) sniffed(in Input, out detected, declared format, known bool) (detected, error) {
	peek, chosen := peekText(in.Data), textFormat()
	for _, f := range t {
		if !f.binary && f.sniff != nil && f.sniff(peek) {
			chosen = f
			break
		}
	}
	switch {
	case !known:
		out.format = chosen
		return out, nil
	case declared.binary:
		text, err := readable(in.Data, out.charset)
		if err != nil || text.weak {
			return detected{}, damaged("the file is no %s: its signature is missing", declared.name)
		}
		out.format = chosen
	case chosen.strong:
		out.format = chosen
	}
	out.warnings = contradiction(declared, known, "", out.format)
	return out, nil
}

// peekText is content as sniffers of text see it: without a mark, UTF-16 decoded.
func peekText(data []byte) []byte {
	if enc, name, cut := byteOrderMark(data); enc != nil {
		text, _ := lenient(enc, data[cut:], name)
		return []byte(text)
	}
	return trimUTF8Mark(data)
}

func contradiction(declared format, known bool, media string, got format) []string {
	switch {
	case known && declared.name != got.name:
		return []string{fmt.Sprintf("declared as %s, the content is %s", declared.name, got.name)}
	case !known && media != "":
		return []string{fmt.Sprintf("declared as %s, the content is %s", clip(media, 80), got.name)}
	}
	return nil
}

// mediaType splits a Content-Type. The generic types that say nothing count as absent.
func mediaType(contentType string) (media, charset string, err error) {
	if strings.TrimSpace(contentType) == "" {
		return "", "", nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil && media == "" {
		return "", "", &messages.Error{
			Code: messages.CodeUnsupportedMediaType, Field: "contentType", Message: "is no media type",
		}
	}
	switch media {
	case "application/octet-stream", "binary/octet-stream", "application/x-unknown", "*/*":
		media = ""
	}
	return media, params["charset"], nil
}

// formatFor finds the format of a media type, or of the file name when no type is declared. Plain text
// says little: there the name of another text format decides.
func (t table) formatFor(media, name string) (format, bool) {
	if media == "" || media == "text/plain" {
		byName, named := t.formatOfName(name)
		if media == "" || named && !byName.binary {
			return byName, named
		}
	}
	for _, f := range t {
		if slices.Contains(f.mediaTypes, media) {
			return f, true
		}
	}
	switch {
	case strings.HasSuffix(media, "+xml"):
		return xmlFormat(), true
	case strings.HasSuffix(media, "+json"):
		return jsonFormat(), true
	case strings.HasPrefix(media, "image/"):
		return imageFormat(), true
	case strings.HasPrefix(media, "text/"): // any other text type is text
		return textFormat(), true
	}
	return format{}, false
}

func (t table) formatOfName(name string) (format, bool) {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	ext := path.Ext(base)
	for _, f := range t {
		if ext != "" && slices.Contains(f.extensions, ext) || slices.Contains(f.extensions, base) {
			return f, true
		}
	}
	return format{}, false
}
