package embedding

import (
	"encoding/binary"
	"fmt"
	"math"
)

// EncodeVector gives the vector as little-endian 32-bit floats, 4 bytes a dimension.
func EncodeVector(v []float32) []byte {
	out := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
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

// norm is the length of the vector; NaN or infinite when a value is.
func norm(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(float64(x) * float64(x)) // the conversion forbids fusing, equal on every CPU
	}
	return math.Sqrt(sum)
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
