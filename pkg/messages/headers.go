package messages

// Headers of publishes from outside with a raw body. Values are percent-encoded UTF-8.
const (
	HeaderDocID       = "Weir-Doc-Id"
	HeaderSubspace    = "Weir-Subspace"
	HeaderOSSKey      = "Weir-Oss-Key"
	HeaderTitle       = "Weir-Title"
	HeaderMetadata    = "Weir-Metadata" // a JSON object
	HeaderContentType = "Content-Type"
)

// Headers of requests.
const (
	HeaderDeadline       = "deadline-ms"     // remaining budget in milliseconds
	HeaderIdempotencyKey = "idempotency-key" // of submit and delete, at most 128 bytes
	HeaderRequestID      = "request-id"      // of the caller, at most 128 bytes; replies repeat it
	HeaderRetryAfter     = "Retry-After"     // of a reply OVERLOADED: seconds
	// HeaderPassword opens a protected document, percent-encoded. Of submit requests only: a publish would
	// store it, so one that carries it is refused.
	HeaderPassword = "Weir-Password"
)

// Headers of internal messages: lower case, one value each.
const (
	HeaderMsgType       = "msg-type" // for instance weir.parse.v1
	HeaderTenant        = "tenant"
	HeaderKB            = "kb"
	HeaderKBID          = "kb-id"
	HeaderDoc           = "doc" // percent-encoded document id
	HeaderVersion       = "doc-version"
	HeaderFirstAt       = "first-at"       // RFC 3339, when the work was first published
	HeaderCorrelationID = "correlation_id" // Watermill's own key
	HeaderTraceParent   = "traceparent"
	HeaderTraceState    = "tracestate"
	HeaderBaggage       = "baggage"
	HeaderMsgID         = "Nats-Msg-Id"

	HeaderDeadCode    = "dlq-code"
	HeaderDeadReason  = "dlq-reason"
	HeaderDeadField   = "dlq-field"
	HeaderDeadStage   = "dlq-stage"
	HeaderDeadStream  = "dlq-stream"
	HeaderDeadSeq     = "dlq-seq"
	HeaderDeadTries   = "dlq-tries"
	HeaderDeadSubject = "dlq-subject" // the subject the message was taken from
	HeaderDeadMsgID   = "dlq-msg-id"  // the message's own Nats-Msg-Id, when it had one
	// HeaderDeadTruncated is the size of a body that was cut to fit: such a letter cannot be replayed.
	HeaderDeadTruncated = "dlq-truncated"
)
