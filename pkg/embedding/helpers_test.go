package embedding_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// countDials counts the connections the client makes from now on.
func countDials(h *http.Client) func() int {
	var n atomic.Int64
	transport := h.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return dial(ctx, network, addr)
	}
	return func() int { return int(n.Load()) }
}
