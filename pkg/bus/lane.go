package bus

import "time"

// laneState says what the dispatcher knows of a lane.
type laneState int

const (
	laneReady    laneState = iota // may have messages
	laneFetching                  // a request for messages is under way
	laneWatched                   // empty; a bell will tell
	laneResting                   // failed or empty in vain; looked at again at wake
)

// lane is one consumer of the stage. Only the dispatcher touches it.
type lane struct {
	index   int
	durable string
	subject string // of pull requests

	state    laneState
	request  uint64    // number of the present fetch
	reserved int       // workers kept for its messages still to come
	got      int       // messages of it
	deadline time.Time // after which it has failed
	wake     time.Time
	vain     int  // watches in a row that rang without a message to be had
	quiet    bool // resting because of that: watch next, do not fetch
	failures int  // in a row

	lastStream, lastConsumer uint64 // highest sequences seen, to notice a recreated stream
}

// rest keeps a lane away for d.
func (l *lane) rest(d time.Duration) {
	l.state, l.wake = laneResting, time.Now().Add(d)
}
