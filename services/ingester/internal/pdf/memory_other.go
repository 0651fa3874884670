//go:build !linux

package pdf

func reserve(n int) []byte { return make([]byte, n) }

func release([]byte) {}
