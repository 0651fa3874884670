package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/guard"
	"github.com/weir-project/weir/pkg/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func breaks() error { panic("document text") }

// internal checks that err is a panic that logs can place and that tells others nothing.
func internal(t *testing.T, err error) {
	t.Helper()
	p, ok := guard.Caught(err)
	if !ok {
		t.Fatalf("got %v, want a panic", err)
	}
	if text := err.Error(); !strings.Contains(text, "document text") || !strings.Contains(text, "guard_test.breaks") || len(p.Stack) == 0 {
		t.Errorf("got %q, want what happened and where", text)
	}
	told, ok := messages.AsError(err)
	if !ok || told.Code != messages.CodeInternal || strings.Contains(told.Message, "document text") {
		t.Errorf("others are told %v, want INTERNAL and no more", told)
	}
}

func TestAPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	internal(t, fmt.Errorf("wrapped: %w", guard.Call(breaks)))
	failed := errors.New("failed")
	if err := guard.Call(func() error { return failed }); err != failed {
		t.Errorf("got %v, want what was returned", err)
	}
	if err := guard.Call(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if _, ok := guard.Caught(failed); ok {
		t.Error("an error that was returned is taken for a panic")
	}
}

// An error that something panicked with must not be taken for one that was returned, such as "nothing left to do".
func TestWhatWasPanickedWithIsNotUnwrapped(t *testing.T) {
	t.Parallel()
	stale := errors.New("stale")
	if err := guard.Call(func() error { panic(stale) }); err == nil || errors.Is(err, stale) {
		t.Errorf("got %v, want a panic that is not %v", err, stale)
	}
}

func TestAPanicEndsItsGroup(t *testing.T) {
	t.Parallel()
	g, ctx := guard.WithContext(t.Context())
	g.Go(func() error {
		<-ctx.Done() // of the other's panic
		return ctx.Err()
	})
	g.Go(breaks)
	internal(t, g.Wait())
	if _, ok := guard.Caught(context.Cause(ctx)); !ok {
		t.Errorf("the context ended with %v, want the panic", context.Cause(ctx))
	}
}

func TestAPlaceOfAPanicIsFreeAgain(t *testing.T) {
	t.Parallel()
	var g guard.Group
	g.SetLimit(1)
	ran := 0
	for range 3 {
		g.Go(func() error { ran++; return breaks() })
	}
	internal(t, g.Wait())
	if ran != 3 {
		t.Errorf("%d functions ran, want 3: a group without a context cancels nothing", ran)
	}
}
