package messages

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 defines version 5 over SHA-1; it names, it does not protect
	"fmt"
	"strconv"
)

// ossKeyNamespace is the URL name space of RFC 9562, appendix;
// the name is "<subspace>/<key>".
var ossKeyNamespace = [16]byte{0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}

// IDFromOSSKey is the document id of a submit that names only its object key: the version 5 UUID of
// subspace, a slash and key.
func IDFromOSSKey(subspace, key string) string {
	if subspace == "" {
		subspace = DefaultSubspace
	}
	h := sha1.New() //nolint:gosec // see the import
	h.Write(ossKeyNamespace[:])
	h.Write([]byte(subspace + "/" + key))
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }
