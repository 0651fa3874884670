package cli

import (
	"context"
	"io"
)

// input reads what from holds until ctx ends. A read of a terminal or a pipe cannot be interrupted: it is left behind,
// on its goroutine, until something comes. Used by one goroutine at a time.
type input struct {
	ctx    context.Context
	from   io.Reader
	pieces chan piece // made by the first Read: what a command does not ask for stays where it is
	rest   piece
}

type piece struct {
	data []byte
	err  error // behind data
}

func newInput(ctx context.Context, from io.Reader) *input { return &input{ctx: ctx, from: from} }

// Read is that of io.Reader, and the cause of the end of ctx.
func (in *input) Read(p []byte) (int, error) {
	if in.ctx.Err() != nil {
		return 0, context.Cause(in.ctx)
	}
	if in.pieces == nil {
		in.pieces = make(chan piece)
		go in.fetch()
	}
	if len(in.rest.data) == 0 && in.rest.err == nil {
		select {
		case in.rest = <-in.pieces:
		case <-in.ctx.Done():
			return 0, context.Cause(in.ctx)
		}
	}
	n := copy(p, in.rest.data)
	in.rest.data = in.rest.data[n:]
	if len(in.rest.data) == 0 {
		return n, in.rest.err
	}
	return n, nil
}

func (in *input) fetch() {
	for {
		data := make([]byte, 64<<10)
		n, err := in.from.Read(data)
		select {
		case in.pieces <- piece{data[:n], err}:
		case <-in.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
