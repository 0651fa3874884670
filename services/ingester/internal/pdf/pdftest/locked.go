package pdftest

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what the format asks for
	"crypto/rc4" //nolint:gosec // what the format asks for
	"encoding/binary"
	"fmt"
)

// Locked is a file of one page that needs a user password (40-bit RC4, the oldest protection there is).
func Locked(content, password string) []byte {
	const permissions, keyBytes = -4, 5
	id := []byte("0123456789abcdef")
	owner := md5.Sum(padded("owner")) //nolint:gosec // as above
	o := rc4ed(owner[:keyBytes], padded(password))
	seed := append(padded(password), o...)
	seed = binary.LittleEndian.AppendUint32(seed, uint32(0xffffffff+permissions+1)&0xffffffff)
	full := md5.Sum(append(seed, id...)) //nolint:gosec // as above
	key := full[:keyBytes]
	u := rc4ed(key, padded(""))
	const contentObject = 4
	stream := rc4ed(objectKey(key, contentObject), []byte(content))
	data := File("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>", Stream("", string(stream)),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	trailer := fmt.Sprintf("/Root 1 0 R /ID [<%x><%x>] /Encrypt << /Filter /Standard /V 1 /R 2 /O <%x> /U <%x> /P %d >>", id, id, o, u, permissions)
	return bytes.Replace(data, []byte("/Root 1 0 R"), []byte(trailer), 1)
}

// padded is a password brought to 32 bytes with the string that the format gives.
func padded(password string) []byte {
	const pad = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"
	return []byte((password + pad)[:len(pad)])
}

func objectKey(key []byte, object uint32) []byte {
	seed := binary.LittleEndian.AppendUint32(bytes.Clone(key), object)[:len(key)+3]
	sum := md5.Sum(append(seed, 0, 0)) //nolint:gosec // as above
	return sum[:len(key)+5]
}

func rc4ed(key, data []byte) []byte {
	c, err := rc4.NewCipher(key) //nolint:gosec // as above
	if err != nil {
		panic(err) // the key has a length that is allowed
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// Form is a file of one page with text fields and a ticked box.
func Form(values map[string]string) []byte {
	objects := []string{
		"", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		Stream("", "BT /F1 12 Tf 72 700 Td (A form) Tj ET"),
	}
	var refs string
	for name, value := range values {
		refs += fmt.Sprintf("%d 0 R ", len(objects)+1)
		objects = append(objects, fmt.Sprintf("<< /Type /Annot /Subtype /Widget /FT /Tx /T (%s) /V (%s) /Rect [72 600 300 620] /P 3 0 R >>", name, value))
	}
	objects[0] = fmt.Sprintf("<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [%s] /DA (/F1 12 Tf) /DR << /Font << /F1 4 0 R >> >> >> >>", refs)
	objects[2] = fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R /Annots [%s] >>", refs)
	return File(objects...)
}

// Outlined is a file whose pages say their contents, with an outline of titles, one for each page.
func Outlined(contents, titles []string) []byte {
	objects := []string{"", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"}
	var kids string
	var pages []int
	for _, c := range contents {
		n := len(objects) + 1
		kids += fmt.Sprintf("%d 0 R ", n)
		pages = append(pages, n)
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", n+1), Stream("", c))
	}
	root := len(objects) + 1
	objects = append(objects, fmt.Sprintf("<< /Type /Outlines /First %d 0 R /Last %d 0 R /Count %d >>", root+1, root+len(titles), len(titles)))
	for i, title := range titles {
		next := ""
		if i+1 < len(titles) {
			next = fmt.Sprintf("/Next %d 0 R", root+i+2)
		}
		objects = append(objects, fmt.Sprintf("<< /Title (%s) /Parent %d 0 R %s /Dest [%d 0 R /Fit] >>", title, root, next, pages[min(i, len(pages)-1)]))
	}
	objects[0] = fmt.Sprintf("<< /Type /Catalog /Pages 2 0 R /Outlines %d 0 R >>", root)
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(contents))
	return File(objects...)
}
