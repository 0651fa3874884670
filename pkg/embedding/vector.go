package embedding

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// EncodeVector gives the vector as little-endian 32-bit floats, 4 bytes a dimension.
func EncodeVector(v []float32) []byte { return AppendVector(make([]byte, 0, 4*len(v)), v) }

// AppendVector appends what EncodeVector gives.
func AppendVector(out []byte, v []float32) []byte {
	at := len(out)
	out = slices.Grow(out, 4*len(v))[:at+4*len(v)]
	for i, x := range v {
		binary.LittleEndian.PutUint32(out[at+4*i:], math.Float32bits(x))
	}
	return out
}

// DecodeVector reads what EncodeVector wrote. The length of b must be a multiple of 4.
func DecodeVector(b []byte) ([]float32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("decode vector: %d bytes are not a whole number of floats", len(b))
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

// norm is the length of the vector; NaN or infinite when a value is. Four sums keep a processor busier than one; the
// conversions forbid fusing, so that every CPU has the same result.
func norm(v []float32) float64 {
	var a, b, c, d float64
	for ; len(v) >= 4; v = v[4:] {
		a += float64(float64(v[0]) * float64(v[0]))
		b += float64(float64(v[1]) * float64(v[1]))
		c += float64(float64(v[2]) * float64(v[2]))
		d += float64(float64(v[3]) * float64(v[3]))
	}
	for _, x := range v {
		a += float64(float64(x) * float64(x))
	}
	return math.Sqrt(a + b + c + d)
}

// unitTolerance is how far from length 1 a vector of a normalised space may be as sent.
const unitTolerance = 1e-4

// normalize scales v in place to length 1 unless it is there already.
func normalize(v []float32) {
	n := norm(v)
	if n == 0 || math.Abs(n-1) <= unitTolerance {
		return
	}
	for i, x := range v {
		v[i] = float32(float64(x) / n)
	}
}
