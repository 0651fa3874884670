package service

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitOutlastsAnOutageAndNothingElse(t *testing.T) {
	t.Parallel()
	down, wrong := errors.New("down"), errors.New("wrong")
	for name, c := range map[string]struct {
		answers []error // the last one for ever
		want    error
		calls   int
	}{
		"all is well":               {[]error{nil}, nil, 1},
		"an outage that ends":       {[]error{down, down, nil}, nil, 3},
		"an outage that reveals it": {[]error{down, wrong}, wrong, 2},
		"an outage without an end":  {[]error{down}, down, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, begin := 0, time.Now()
				err := Await(t.Context(), slog.New(slog.DiscardHandler), func(err error) bool { return errors.Is(err, down) }, func(context.Context) error {
					calls++
					return c.answers[min(calls, len(c.answers))-1]
				})
				if !errors.Is(err, c.want) || c.calls > 0 && calls != c.calls {
					t.Errorf("got %v after %d calls, want %v after %d", err, calls, c.want, c.calls)
				}
				if waited := time.Since(begin); waited > awaitMost {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}
