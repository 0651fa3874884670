package service

import (
	"context"
	"log/slog"
	"time"
)

// awaitMost bounds the wait of Await: longer than the restart of a database or a bus takes.
const awaitMost = time.Minute

// Await calls check until it returns nil, and waits for as long as what it fails with is an outage: a
// process whose database or bus is restarted while it starts is not to end for it. It returns the first
// error that is none, or after a minute the last one.
func Await(ctx context.Context, logger *slog.Logger, outage func(error) bool, check func(context.Context) error) error {
	var final error
	err := untilUp(ctx, awaitMost, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil && !outage(err) {
			final = err
			return nil
		}
		return err
	}, func(err error) { logger.Warn("waiting for the end of an outage", "err", err) })
	if final != nil {
		return final
	}
	return err
}
