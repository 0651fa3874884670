package bus

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
)

// Settings are the parts of the topology that an operator chooses. The zero value is one replica with
// the limits of the tables in pkg/messages.
type Settings struct {
	// Replicas of every stream: 1 (default), 3 or 5. With 1, a power loss can lose the last seconds.
	Replicas int
	// AckWait overrides that of every stage, zero keeps it. Above 15 s with several replicas, or an
	// election makes duplicates.
	AckWait time.Duration
	// MaxBytes overrides the size of every work stream, zero keeps it.
	MaxBytes int64
	// MaxAckPending bounds the messages of one lane that wait for an answer, delayed ones included;
	// zero is 8192. Workers bound the running ones.
	MaxAckPending int
	// MemoryStorage keeps streams in memory, for tests.
	MemoryStorage bool
}

func (s Settings) withDefaults() Settings {
	s.Replicas = max(s.Replicas, 1)
	if s.MaxAckPending == 0 {
		s.MaxAckPending = 8192
	}
	return s
}

// streamConfig writes what Weir wants of a stream over base, the present configuration or an empty
// one, so that what an operator added besides (placement, republish, compression) stays.
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
	base.MaxAge, base.MaxMsgSize, base.Duplicates = s.MaxAge, sizeLimit(s.MaxMsgSize), s.Duplicates
	base.MaxBytes = bytesLimit(s, set)
	base.Replicas = set.Replicas
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

func bytesLimit(s messages.Stream, set Settings) int64 {
	n := s.MaxBytes
	if set.MaxBytes > 0 && s.Retention == messages.WorkQueue {
		n = set.MaxBytes
	}
	if n == 0 {
		return -1
	}
	return n
}

func consumerConfig(base jetstream.ConsumerConfig, st messages.Stage, lane int, set Settings) jetstream.ConsumerConfig {
	base.Name, base.Durable = st.Durable(lane), st.Durable(lane)
	base.FilterSubject, base.FilterSubjects = st.FilterSubject(lane), nil
	base.DeliverPolicy, base.AckPolicy = jetstream.DeliverAllPolicy, jetstream.AckExplicitPolicy
	base.AckWait = st.AckWait
	if set.AckWait > 0 {
		base.AckWait = set.AckWait
	}
	base.MaxDeliver, base.MaxAckPending = -1, set.MaxAckPending
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
