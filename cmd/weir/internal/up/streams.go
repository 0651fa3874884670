package up

import (
	"errors"
	"flag"
	"fmt"

	"github.com/weir-project/weir/pkg/bus"
)

// StreamOptions are what an operator may choose of the streams. Zero keeps what they have; new ones get the
// default.
type StreamOptions struct {
	// Replicas of every stream, 1 to 5: odd numbers make sense.
	Replicas int
	// MaxBytes is the size of every work stream.
	MaxBytes int64
}

// minStreamBytes leaves room for some messages of the largest size.
const minStreamBytes = 16 << 20

// Flags binds the fields.
func (o *StreamOptions) Flags(fs *flag.FlagSet) {
	fs.IntVar(&o.Replicas, "stream-replicas", o.Replicas, "replicas of every stream; 0: as they are, 1 for new ones")
	fs.Int64Var(&o.MaxBytes, "stream-max-bytes", o.MaxBytes, "size of every work stream; 0: as they are, the usual for new ones")
}

// Validate reports every wrong field.
func (o *StreamOptions) Validate() error {
	var problems []error
	if o.Replicas < 0 || o.Replicas > 5 {
		problems = append(problems, errors.New("stream-replicas: must be 0 to 5"))
	}
	if o.MaxBytes != 0 && o.MaxBytes < minStreamBytes {
		problems = append(problems, fmt.Errorf("stream-max-bytes: must be 0 or at least %d", minStreamBytes))
	}
	return errors.Join(problems...)
}

func (o StreamOptions) settings() bus.Settings {
	return bus.Settings{Replicas: o.Replicas, MaxBytes: o.MaxBytes}
}
