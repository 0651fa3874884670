package testkit

import "go.uber.org/goleak"

// UploadLeak excuses a goroutine of nats.go (v1.55.0), for packages whose tests put objects: ObjectStore.Put begins it, and
// where Put is over before it runs it finds no channel to wait on, and waits for ever.
func UploadLeak() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
