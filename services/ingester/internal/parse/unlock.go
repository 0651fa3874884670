package parse

import (
	"bytes"
	"context"
	"io"
)

// Unlock opens a protected document with its password and writes it to out without protection. Content
// that is not protected, or of a kind that is never, is written as it is. Errors of the document are
// *messages.Error; PASSWORD_REQUIRED when the password is not the right one.
func Unlock(ctx context.Context, engine *PDFEngine, data []byte, password string, out io.Writer) error {
	if !IsPDF(data) {
		_, err := out.Write(data)
		return err
	}
	r, err := engine.load(ctx)
	if err != nil {
		return err
	}
	f, err := r.Open(bytes.NewReader(data), int64(len(data)), password)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Unlocked(out)
}
