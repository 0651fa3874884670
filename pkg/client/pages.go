package client

import "iter"

// pages goes through the items of a listing, page by page as they are wanted. It begins anew every time it
// is ranged over.
func pages[T any](fetch func(token string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := ""; ; {
			items, next, err := fetch(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// from is the token of the first page, then those that follow.
func from(first, token string) string {
	if token == "" {
		return first
	}
	return token
}
