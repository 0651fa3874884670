// Package bus carries Weir's messages: work through JetStream streams, requests through NATS
// request-reply. Everything that is the same for every stage lives here, once: acknowledging,
// in-progress signals, backoff, dead letters, pausing in an outage, tracing, metrics and draining.
//
// # Publishing
//
// [Publisher] returns only when every message is stored, keeps a bounded number of messages and
// bytes in flight, and repeats a publish that may or may not have arrived under the same message id,
// so that the stream keeps it once. A full stream is [ErrBackpressure] to the caller, never a silent
// wait and never a loss.
//
// # Consuming
//
// [Runner] runs the handler of one stage. A message is acknowledged after the handler returned and
// everything it returned is stored. Delivery is at least once: a handler is called again with the
// same message after a crash, a lost connection or a failed try, and must be idempotent.
//
// What a handler returns decides what happens to its message:
//
//   - nil: the returned messages are published, then the message is acknowledged;
//   - an error that holds a [messages.Error]: permanent; the message goes to the dead letters;
//   - [Pause]: an outage of something every message needs; nothing is fetched for a growing time, the
//     message stays with this worker, in progress, and is tried again. It burns no delivery;
//   - any other error: one failed try; the message comes back after a growing delay with jitter, the
//     last try goes to the dead letters as DELIVERIES_EXHAUSTED;
//   - a panic: permanent, INTERNAL, of that message only;
//   - anything while stopping, once the drain time is over: handed back at once, not counted.
//
// # Counting tries
//
// Consumers have no server-side delivery limit: reaching one would leave the message in its stream
// for ever, undelivered. A message's failures for its own sake are counted in the process (at most
// [maxCounted] messages; a restart forgets). Independently, a message that was delivered
// [DeliveryFactor] times its MaxTries, however those deliveries ended (crashes, lost connections,
// failures counted by other processes), is dead-lettered: that is the bound for a message that kills
// its worker. Outages do not count towards either, because a paused message is not delivered anew.
//
// # Fairness
//
// A stage's work is spread over lanes, one consumer each. The subscriber asks for messages only with
// free workers in hand and takes lanes in turn, at most a few messages a time. It waits for an empty
// lane with a one-byte pull request: the server refuses it as soon as there is a message, so all
// lanes are watched at once, no message is ever buffered, and an idle lane holds no worker.
//
// # Requests
//
// [Service] serves request-reply endpoints with bounded concurrency, deadlines, panics contained and
// a drain that waits. [Call] is the other end. Application errors travel in the envelope of
// [messages.Envelope], always as an ordinary reply.
package bus
