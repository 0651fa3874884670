package bus

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// Settings are the parts of the topology that an operator chooses. A zero field keeps what a stream or
// consumer has; a new one gets the default.
type Settings struct {
	// Replicas of every stream: 1 (default), 3 or 5. With 1, a power loss can lose the last seconds.
	Replicas int
	// AckWait of every consumer; by default that of its stage. Above 15 s with several replicas, or an
	// election makes duplicates.
	AckWait time.Duration
	// MaxBytes is the size of every work stream; by default that of the tables in pkg/messages.
	MaxBytes int64
	// MaxAckPending bounds the messages of one lane that wait for an answer, delayed ones included; by
	// default 8192. Workers bound the running ones.
	MaxAckPending int
	// MemoryStorage keeps streams in memory, for tests.
	MemoryStorage bool
}

const defaultMaxAckPending = 8192

// choose returns what is asked for, else what is there, else the default.
func choose[T comparable](asked, there, standard T) T {
	var zero T
	if asked != zero {
		return asked
	}
	if there != zero {
		return there
	}
	return standard
}

// streamConfig writes what Weir wants of a stream over base, the present configuration or an empty
// one, so that what an operator chose (sizes, ages, replicas) or added (placement, republish, compression)
// stays.
func streamConfig(base jetstream.StreamConfig, s messages.Stream, set Settings) jetstream.StreamConfig {
	base.Name, base.Subjects = s.Name, s.Subjects
	base.Retention = jetstream.LimitsPolicy
	if s.Retention == messages.WorkQueue {
		base.Retention = jetstream.WorkQueuePolicy
	}
	base.Discard = jetstream.DiscardNew
	if s.DropOld {
		base.Discard = jetstream.DiscardOld
	}
	base.MaxAge, base.MaxBytes = ageLimit(base, s), bytesLimit(base, s, set)
	base.MaxMsgSize, base.Duplicates = sizeLimit(s.MaxMsgSize), s.Duplicates
	base.Replicas = choose(set.Replicas, base.Replicas, 1)
	if set.MemoryStorage {
		base.Storage = jetstream.MemoryStorage
	}
	base.AllowDirect = true
	base.SubjectTransform = nil
	if s.TransformSource != "" {
		base.SubjectTransform = &jetstream.SubjectTransformConfig{Source: s.TransformSource, Destination: s.TransformDestination}
	}
	if base.Duplicates == 0 {
		base.Duplicates = 2 * time.Minute
	}
	if base.MaxAge > 0 {
		base.Duplicates = min(base.Duplicates, base.MaxAge)
	}
	return base
}

func sizeLimit(n int32) int32 {
	if n == 0 {
		return -1
	}
	return n
}

// ageLimit keeps an age that was chosen, but not where an age would drop work.
func ageLimit(base jetstream.StreamConfig, s messages.Stream) time.Duration {
	if s.MaxAge == 0 {
		return 0
	}
	return choose(0, base.MaxAge, s.MaxAge)
}

// bytesLimit: the server shows an unlimited stream as -1.
func bytesLimit(base jetstream.StreamConfig, s messages.Stream, set Settings) int64 {
	asked := set.MaxBytes
	if s.Retention != messages.WorkQueue {
		asked = 0
	}
	return choose(asked, base.MaxBytes, choose(s.MaxBytes, 0, -1))
}

func consumerConfig(base jetstream.ConsumerConfig, st messages.Stage, lane int, set Settings) jetstream.ConsumerConfig {
	base.Name, base.Durable = st.Durable(lane), st.Durable(lane)
	base.FilterSubject, base.FilterSubjects = st.FilterSubject(lane), nil
	base.DeliverPolicy, base.AckPolicy = jetstream.DeliverAllPolicy, jetstream.AckExplicitPolicy
	base.AckWait = choose(set.AckWait, base.AckWait, st.AckWait)
	base.MaxDeliver, base.MaxAckPending = -1, choose(set.MaxAckPending, base.MaxAckPending, defaultMaxAckPending)
	base.BackOff, base.InactiveThreshold = nil, 0
	base.MaxWaiting = max(base.MaxWaiting, 512)
	return base
}

// difference is one setting that is not as wanted. essential ones break a running service.
type difference struct {
	field     string
	got, want any
	essential bool
}

func (d difference) String() string { return fmt.Sprintf("%s %v -> %v", d.field, d.got, d.want) }

func diffStream(got, want jetstream.StreamConfig) []difference {
	return slices.DeleteFunc([]difference{
		{"subjects", got.Subjects, want.Subjects, true},
		{"retention", got.Retention, want.Retention, true},
		{"discard", got.Discard, want.Discard, true},
		{"subject transform", transform(got), transform(want), true},
		{"duplicates", got.Duplicates, want.Duplicates, true},
		{"max message size", got.MaxMsgSize, want.MaxMsgSize, true},
		{"max age", got.MaxAge, want.MaxAge, false},
		{"max bytes", got.MaxBytes, want.MaxBytes, false},
		{"replicas", got.Replicas, want.Replicas, false},
		{"allow direct", got.AllowDirect, want.AllowDirect, false},
	}, difference.equal)
}

func diffConsumer(got, want jetstream.ConsumerConfig) []difference {
	return slices.DeleteFunc([]difference{
		{"filter", got.FilterSubject, want.FilterSubject, true},
		{"ack policy", got.AckPolicy, want.AckPolicy, true},
		{"max deliver", got.MaxDeliver, want.MaxDeliver, true},
		{"backoff", fmt.Sprint(got.BackOff), fmt.Sprint(want.BackOff), true},
		{"inactive threshold", got.InactiveThreshold, want.InactiveThreshold, true},
		{"ack wait", got.AckWait, want.AckWait, false},
		{"max ack pending", got.MaxAckPending, want.MaxAckPending, false},
	}, difference.equal)
}

func (d difference) equal() bool { return fmt.Sprint(d.got) == fmt.Sprint(d.want) }

func transform(c jetstream.StreamConfig) string {
	if c.SubjectTransform == nil {
		return "none"
	}
	return c.SubjectTransform.Source + " => " + c.SubjectTransform.Destination
}
