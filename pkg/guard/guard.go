// Package guard makes errors of panics, so that what one message or request runs into fails that one alone. The loops
// and endpoints of pkg/bus call handlers through it; a handler that has others work for it does so through a Group: a
// panic on a goroutine that nobody guards ends the process.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/pkg/messages"
)

// Panic is a panic as an error. Its text is for logs only: what the panic said may be of a document. The
// messages.Error inside it, INTERNAL, is what others are told.
type Panic struct {
	Value any    // what was recovered
	Stack []byte // of the goroutine that panicked
}

// Error tells all there is to know, in several lines.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Unwrap is what others are told. The value is never unwrapped: an error that was panicked with is none to be tested for.
func (p *Panic) Unwrap() error { return messages.Errorf(messages.CodeInternal, "internal error") }

// Caught returns the panic inside err, and whether there is one.
func Caught(err error) (*Panic, bool) { return errors.AsType[*Panic](err) }

// Call calls f; a panic of it is a *Panic.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Group runs functions at the same time, as an errgroup.Group does, but one that panics returns a *Panic. The zero value
// has no limit and cancels nothing.
type Group errgroup.Group

// WithContext returns a group, and a context that ends with the first error of its functions or with Wait.
func WithContext(ctx context.Context) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return (*Group)(g), ctx
}

// SetLimit has Go wait while n functions run; call it before Go.
func (g *Group) SetLimit(n int) { (*errgroup.Group)(g).SetLimit(n) }

// Go runs f on a goroutine of its own.
func (g *Group) Go(f func() error) {
	(*errgroup.Group)(g).Go(func() error { return Call(f) })
}

// Wait returns the first error when all functions have returned.
func (g *Group) Wait() error { return (*errgroup.Group)(g).Wait() }
