// Package pdftest makes PDF files for tests: good ones, and ones that end the process that reads them.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// File writes objects 1..n with a right cross-reference table; object 1 is the catalogue.
func File(objects ...string) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.Bytes()
}

// Stream writes a stream object with its length.
func Stream(dict, content string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(content), content)
}

// Pages makes a file with one page for each content stream, all in Helvetica.
func Pages(contents ...string) []byte {
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}
	var kids strings.Builder
	for _, c := range contents {
		n := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", n)
		objects = append(objects,
			fmt.Sprintf("<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", n+1), Stream("", c))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), len(contents))
	return File(objects...)
}

// SelfObjectStream is a file whose cross-reference stream puts object 4, an object stream, into itself.
func SelfObjectStream() []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.5\n")
	at := out.Len()
	out.WriteString("3 0 obj\n" + Stream("/Type /ObjStm /N 1 /First 4", "4 0 << >>") + "\nendobj\n")
	start := out.Len()
	rows := [][5]byte{{0}, {2, 0, 4, 0}, {2, 0, 4, 0}, {1, byte(at >> 8), byte(at)}, {2, 0, 4, 0}}
	var table bytes.Buffer
	for _, r := range rows {
		table.Write(r[:4])
	}
	out.WriteString("5 0 obj\n" + Stream("/Type /XRef /Size 5 /W [1 2 1] /Root 1 0 R", table.String()) + "\nendobj\n")
	fmt.Fprintf(&out, "startxref\n%d\n%%%%EOF\n", start)
	return out.Bytes()
}

// HugeSubsection is a file whose cross-reference table says it begins at object four thousand million.
func HugeSubsection() []byte {
	return bytes.Replace(Pages("BT /F1 12 Tf (x) Tj ET"), []byte("xref\n0 "), []byte("xref\n4000000000 "), 1)
}

// KidsCycle is a file whose page tree contains itself.
func KidsCycle() []byte {
	return File("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R] /Count 1 >>")
}

// FlateBomb is a file of some kilobytes whose only page has thirteen million operators.
func FlateBomb() []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	chunk := bytes.Repeat([]byte("(A) Tj "), 1<<16)
	write := func(p []byte) {
		if _, err := w.Write(p); err != nil {
			panic(err) // a buffer takes everything
		}
	}
	write([]byte("BT /F1 12 Tf "))
	for range 200 {
		write(chunk)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return File("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		Stream("/Filter /FlateDecode", packed.String()))
}
