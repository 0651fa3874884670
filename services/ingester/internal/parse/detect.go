package parse

import (
	"bytes"
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// detected is the format chosen for an input.
type detected struct {
	format   format
	charset  string // declared with the media type
	warnings []string
}

// detect chooses the format: content that has a sure binary sign decides alone; then the declared
// type; then the file name; then what text looks like.
func detect(in Input) (detected, error) {
	media, charset, err := mediaType(in.ContentType)
	if err != nil {
		return detected{}, err
	}
	declared, known := formatFor(media, in.Name)
	for _, f := range formats() {
		if f.binary && f.sniff(in.Data) {
			return detected{format: f, warnings: contradiction(declared, known, media, f)}, nil
		}
	}
	if what := foreign(in.Data); what != "" {
		return detected{}, messages.Errorf(messages.CodeUnsupportedMediaType, "the content is %s", what)
	}
	if media != "" && !known {
		return detected{}, messages.Errorf(messages.CodeUnsupportedMediaType, "media type %s is not supported", clip(media, 80))
	}
	if known && !declared.binary {
		return detected{format: declared, charset: charset}, nil
	}
	return fallback(in, declared, known, charset)
}

// fallback is for text without a usable declaration.
func fallback(in Input, declared format, known bool, charset string) (detected, error) {
	chosen := textFormat()
	for _, f := range formats() {
		if !f.binary && f.sniff != nil && f.sniff(in.Data) {
			chosen = f
			break
		}
	}
	out := detected{format: chosen, charset: charset}
	if !known {
		return out, nil
	}
	if text, err := readable(in.Data, charset); err != nil || text.weak {
		return detected{}, damaged("the file is no %s: its signature is missing", declared.name)
	}
	out.warnings = contradiction(declared, known, "", chosen)
	return out, nil
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

// formatFor finds the format of a media type, or of the name's extension when no type is declared.
func formatFor(media, name string) (format, bool) {
	ext := strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
	for _, f := range formats() {
		for _, m := range f.mediaTypes {
			if m == media {
				return f, true
			}
		}
		for _, e := range f.extensions {
			if media == "" && e == ext {
				return f, true
			}
		}
	}
	if strings.HasPrefix(media, "text/") { // any other text type is text
		return textFormat(), true
	}
	return format{}, false
}

// foreign names well-known content we do not read.
func foreign(data []byte) string {
	signs := []struct{ magic, what string }{
		{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or password-protected Office file; save it as .docx without a password"},
		{"{\\rtf", "RTF"},
		{"\x89PNG\r\n\x1a\n", "a PNG image"},
		{"\xff\xd8\xff", "a JPEG image"},
		{"GIF8", "a GIF image"},
		{"II*\x00", "a TIFF image"},
		{"MM\x00*", "a TIFF image"},
		{"\x1f\x8b", "a gzip file"},
		{"BZh", "a bzip2 file"},
		{"\xfd7zXZ\x00", "an xz file"},
		{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
		{"Rar!\x1a\x07", "a RAR archive"},
		{"\x7fELF", "a program"},
		{"SQLite format 3\x00", "an SQLite database"},
		{"OggS", "audio or video"},
		{"ID3", "audio"},
	}
	for _, s := range signs {
		if bytes.HasPrefix(data, []byte(s.magic)) && (len(s.magic) > 4 || bytes.IndexByte(data, 0) >= 0) {
			return s.what
		}
	}
	if isZip(data) {
		return zipKind(data)
	}
	return ""
}

func isZip(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06"))
}

// zipKind names a zip that is no docx, by entry names: they stand uncompressed in the file.
func zipKind(data []byte) string {
	kinds := []struct{ entry, what string }{
		{"ppt/presentation.xml", "a PowerPoint presentation"},
		{"xl/workbook.xml", "an Excel workbook"},
		{"META-INF/container.xml", "an EPUB book"},
		{"META-INF/manifest.xml", "an OpenDocument or Java archive"},
	}
	for _, k := range kinds {
		if bytes.Contains(data, []byte(k.entry)) {
			return k.what
		}
	}
	return "a zip archive that holds no Word document"
}
