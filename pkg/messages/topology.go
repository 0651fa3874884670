package messages

import (
	"fmt"
	"time"
)

// Retention says when a stream lets a message go.
type Retention string

// WorkQueue streams drop a message when it is acknowledged, so depth is work left; Limits streams
// keep it until its age is reached.
const (
	WorkQueue Retention = "workqueue"
	Limits    Retention = "limits"
)

// Stream is what Weir needs of a JetStream stream. Every stream discards new messages when full, so
// nothing unprocessed is ever dropped, except DropOld ones.
type Stream struct {
	Name       string
	Subjects   []string
	Retention  Retention
	MaxAge     time.Duration // 0: for ever
	MaxBytes   int64         // 0: unlimited
	MaxMsgSize int32         // bytes, headers included; 0: the server's limit
	Duplicates time.Duration // window in which an equal Nats-Msg-Id is stored once
	DropOld    bool
	// TransformSource and TransformDestination rewrite the subject under which a message is stored;
	// both empty: no rewriting.
	TransformSource      string
	TransformDestination string
}

// Stage is one kind of work: where its messages are stored and how they are handed out.
type Stage struct {
	Name string
	// Stream holds the messages; Filter selects this stage's, with a %d for the lane where Lanes > 1.
	Stream, Filter string
	// Lanes is the number of consumers that share the work; each lane is served in turn.
	Lanes int
	// AckWait is how long the server waits for an answer or a sign of progress. MaxTries counts
	// deliveries that failed for the message's own sake: the last one dead-letters it.
	AckWait  time.Duration
	MaxTries int
	// Timeout is the hard limit of one handler run; after it the message is handed back.
	Timeout time.Duration
	// BackoffMin and BackoffMax bound the delay before a failed message is delivered again.
	BackoffMin, BackoffMax time.Duration
}

// Stage names, also the tokens of their subjects.
const (
	StageIntake = "intake"
	StageParse  = "parse"
	StageEmbed  = "embed"
	StageIndex  = "index"
	StageDead   = "dead"
)

// Stream names.
const (
	StreamDocs     = "WEIR_DOCS"
	StreamParse    = "WEIR_PARSE"
	StreamEmbed    = "WEIR_EMBED"
	StreamIndex    = "WEIR_INDEX"
	StreamDead     = "WEIR_DLQ"
	StreamEvents   = "WEIR_EVENTS"
	StreamAdvisory = "WEIR_ADVISORIES"
)

// Durable is the consumer name of a lane: the same on every host, so work is never stranded by a
// renamed one.
func (s Stage) Durable(lane int) string { return fmt.Sprintf("weir-%s-%d", s.Name, lane) }

// FilterSubject is the subject filter of a lane.
func (s Stage) FilterSubject(lane int) string {
	if s.Lanes > 1 {
		return fmt.Sprintf(s.Filter, lane)
	}
	return s.Filter
}

// MaxWorkBytes is the limit of a work message and of its answer; MaxStreamMsg leaves room for headers.
const (
	MaxWorkBytes = 192 << 10
	maxStreamMsg = 256 << 10
)

// The server reserves the sizes of all streams when it creates them, by default out of three quarters
// of the free disk: together they must fit a modest machine. Full streams only slow publishers down.
const (
	dedupe        = time.Hour
	docsBytes     = 4 << 30
	maxBytes      = 1 << 30
	eventBytes    = 512 << 20
	advisoryBytes = 64 << 20
)

// publisherDedupe is the least a server allows. The window is shared by all tenants, and people use ids
// again: a longer one would drop one publisher's document for the sake of another's. Publishing the
// same document twice costs a receipt.
const publisherDedupe = 100 * time.Millisecond

// Streams is every stream Weir provisions.
func Streams() []Stream {
	work := func(name, stage string) Stream {
		return Stream{
			Name: name, Subjects: []string{SubjectWork + "." + stage + ".>"}, Retention: WorkQueue,
			MaxBytes: maxBytes, MaxMsgSize: maxStreamMsg, Duplicates: dedupe,
		}
	}
	return []Stream{
		{
			Name: StreamDocs, Subjects: []string{"weir.docs.*.*.*"}, Retention: WorkQueue,
			MaxBytes: docsBytes, Duplicates: publisherDedupe,
			TransformSource:      "weir.docs.*.*.*",
			TransformDestination: fmt.Sprintf("weir.docs.{{wildcard(1)}}.{{partition(%d,2,3)}}.{{wildcard(2)}}.{{wildcard(3)}}", Lanes),
		},
		work(StreamParse, StageParse),
		work(StreamEmbed, StageEmbed),
		work(StreamIndex, StageIndex),
		{Name: StreamDead, Subjects: []string{SubjectDead + ".>"}, Retention: WorkQueue, MaxBytes: maxBytes, Duplicates: dedupe},
		{Name: StreamEvents, Subjects: []string{SubjectEvents + ".>"}, Retention: Limits, MaxAge: 7 * 24 * time.Hour, MaxBytes: eventBytes, DropOld: true, Duplicates: dedupe},
		{
			Name: StreamAdvisory, Retention: Limits, MaxAge: 7 * 24 * time.Hour, MaxBytes: advisoryBytes, DropOld: true,
			Subjects: []string{
				"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.WEIR_*.>",
				"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.WEIR_*.>",
			},
		},
	}
}

// Stages is every stage, in the order documents pass them.
func Stages() []Stage {
	lane := func(name, stream string, tries int, timeout time.Duration) Stage {
		return Stage{
			Name: name, Stream: stream, Filter: SubjectWork + "." + name + ".%d.>", Lanes: Lanes,
			AckWait: 30 * time.Second, MaxTries: tries, Timeout: timeout,
			BackoffMin: 500 * time.Millisecond, BackoffMax: 30 * time.Second,
		}
	}
	intake := lane(StageIntake, StreamDocs, 8, 2*time.Minute)
	intake.Filter = "weir.docs.*.%d.>"
	dead := lane(StageDead, StreamDead, 100, time.Minute)
	dead.Filter, dead.Lanes = SubjectDead+".>", 1
	return []Stage{
		intake,
		lane(StageParse, StreamParse, 5, 10*time.Minute),
		lane(StageEmbed, StreamEmbed, 8, 5*time.Minute),
		lane(StageIndex, StreamIndex, 8, 2*time.Minute),
		dead,
	}
}

// StageNamed returns the stage of that name; it panics on an unknown one, a programmer's error.
func StageNamed(name string) Stage {
	for _, s := range Stages() {
		if s.Name == name {
			return s
		}
	}
	panic("messages: no stage " + name)
}
