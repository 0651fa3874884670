package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/client"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// Exit codes of every command.
const (
	ExitOK          = 0
	ExitFailed      = 1 // something went wrong that is none of the following
	ExitUsage       = 2 // unknown command, flag or argument
	ExitNotFound    = 3 // the knowledge base, document or other thing does not exist
	ExitUnavailable = 4 // NATS, a service, Postgres or the embedding server does not answer or does not run
	ExitTimeout     = 5 // no answer within --timeout
	ExitRejected    = 6 // the request or a document was refused: the message names field and reason
	ExitInterrupted = 130
)

const exitHelp = `Exit codes:
  0    done
  1    failed
  2    wrong usage
  3    not found
  4    unavailable: NATS, a service or the database does not answer or does not run
  5    no answer in time
  6    refused: the message names field and reason
  130  interrupted`

// ErrUnavailable is wrapped by errors that mean that something does not run or cannot be reached.
var ErrUnavailable = errors.New("unavailable")

// usageError is an error of the person at the keyboard.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Usagef returns an error that ends the command with ExitUsage.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitOf returns the exit code of an error.
func exitOf(err error) int {
	var usage usageError
	var refused *messages.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.Canceled): // whatever else came of it
		return ExitInterrupted
	case errors.As(err, &refused):
		return exitOfCode(refused.Code)
	case errors.Is(err, client.ErrPermission):
		return ExitRejected
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return ExitTimeout
	case errors.Is(err, ErrUnavailable), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrNoServers),
		errors.Is(err, statedir.ErrNoRun), errors.Is(err, up.ErrRuns):
		return ExitUnavailable
	}
	return ExitFailed
}

func exitOfCode(code messages.Code) int {
	switch code {
	case messages.CodeNotFound, messages.CodeKBNotFound, messages.CodeDocumentNotFound:
		return ExitNotFound
	case messages.CodeUnavailable, messages.CodeEmbeddingUnavailable, messages.CodeOverloaded:
		return ExitUnavailable
	case messages.CodeDeadlineExceeded:
		return ExitTimeout
	case messages.CodeInternal:
		return ExitFailed
	}
	return ExitRejected
}
