package fakeserver_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/embedding/fakeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListenAndServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	base, stopped := make(chan string, 1), make(chan error, 1)
	go func() {
		stopped <- fakeserver.ListenAndServe(ctx, "127.0.0.1:0", fakeserver.Options{Dims: 32}, func(u string) { base <- u })
	}()
	p, err := embedding.NewProvider(embedding.ProviderConfig{BaseURL: <-base})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if dims, err := p.Probe(t.Context(), embedding.Space{Model: "fake"}); err != nil || dims != 32 {
		t.Errorf("got %d dimensions, error %v; want 32", dims, err)
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if err := fakeserver.ListenAndServe(t.Context(), "nowhere:0:0", fakeserver.Options{}, nil); err == nil {
		t.Error("a bad address was accepted")
	}
}
