// Package messages is Weir's contract: the subjects, streams, headers, message bodies and error
// codes that publishers, services and clients share. It imports the standard library only, so both
// ends of every wire compile against exactly the same definitions.
package messages
