package parse

import (
	"archive/zip"
	"bytes"
	"errors"
	"unicode/utf16"

	"github.com/weir-project/weir/pkg/messages"
)

// foreign refuses well-known content that we do not read, saying what to do instead.
func foreign(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return compoundFile(data)
	}
	if isZip(data) {
		_, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		return zipError(zipKind(data), err == nil || errors.Is(err, zip.ErrInsecurePath))
	}
	const tarAt, tarMark = 257, "ustar"
	if len(data) > tarAt+len(tarMark) && string(data[tarAt:tarAt+len(tarMark)]) == tarMark {
		return unsupported("a tar archive" + unpack)
	}
	for _, s := range signs() {
		if bytes.HasPrefix(data, []byte(s.magic)) && (len(s.magic) > 4 || bytes.IndexByte(data, 0) >= 0) {
			return unsupported(s.what)
		}
	}
	return nil
}

const unpack = "; unpack it and submit the documents in it one by one"

func unsupported(what string) error {
	return messages.Errorf(messages.CodeUnsupportedMediaType, "the content is %s", what)
}

type sign struct{ magic, what string }

func signs() []sign {
	return []sign{
		{"\x1f\x8b", "a gzip file" + unpack},
		{"BZh", "a bzip2 file" + unpack},
		{"\xfd7zXZ\x00", "an xz file" + unpack},
		{"\x28\xb5\x2f\xfd", "a Zstandard file" + unpack},
		{"7z\xbc\xaf\x27\x1c", "a 7z archive" + unpack},
		{"Rar!\x1a\x07", "a RAR archive" + unpack},
		{"\x7fELF", "a program"},
		{"MZ", "a program"},
		{"SQLite format 3\x00", "an SQLite database"},
		{"OggS", "audio or video"},
		{"ID3", "audio"},
		{"\x1aE\xdf\xa3", "video"},
		{"PAR1", "a Parquet file; export it as CSV or JSON lines"},
		{"AT&TFORM", "a DjVu document; convert it to PDF"},
		{"!BDN", "an Outlook mailbox; export its messages as .eml"},
	}
}

func zipError(kind string, sound bool) error {
	switch {
	case kind != "":
		return unsupported(kind)
	case !sound:
		return damaged("the archive is broken or cut short")
	}
	return unsupported("a zip archive" + unpack)
}

// compoundFile tells the old Office formats, Outlook messages and protected new ones apart by the names
// of their streams, which are UTF-16.
func compoundFile(data []byte) error {
	for _, k := range []struct{ stream, what string }{
		{"EncryptedPackage", ""},
		{"WordDocument", "an old Word document (.doc); save it as .docx"},
		{"PowerPoint Document", "an old PowerPoint presentation (.ppt); save it as .pptx"},
		{"Workbook", "an old Excel workbook (.xls); save it as .xlsx"},
		{"Book", "an old Excel workbook (.xls); save it as .xlsx"},
		{"__properties_version1.0", "an Outlook message (.msg); save it as .eml"},
	} {
		if !bytes.Contains(data, wide(k.stream)) {
			continue
		}
		if k.what == "" {
			return passwordError()
		}
		return unsupported(k.what)
	}
	return unsupported("an old Office file; save it in the new format (.docx, .xlsx, .pptx) and without a password")
}

func wide(text string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return out
}
