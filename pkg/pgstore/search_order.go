package pgstore

import (
	"cmp"
	"strings"
)

// compareIdentity orders chunks by subspace, document id and ordinal, strings by their bytes.
func compareIdentity(a, b *Match) int {
	if c := strings.Compare(a.Subspace, b.Subspace); c != 0 {
		return c
	}
	if c := strings.Compare(a.DocID, b.DocID); c != 0 {
		return c
	}
	return cmp.Compare(a.Ordinal, b.Ordinal)
}

// orderBy orders by a key, smaller first, then by identity.
func orderBy(keyA, keyB float64, a, b *Match) int {
	if c := cmp.Compare(keyA, keyB); c != 0 {
		return c
	}
	return compareIdentity(a, b)
}
