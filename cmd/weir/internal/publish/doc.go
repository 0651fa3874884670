// Package publish sends documents to a knowledge base and waits until each of them is searchable or
// has failed. It needs nothing of Weir's services but their subjects: documents go to the docs stream, and
// what becomes of them is read from the event stream.
//
// Every document gets a message id of its own, by which its events are recognised. When no event comes
// for a long while (the account may not read them, or the stream forgot them) the state of documents whose
// submit has left the docs stream is asked for instead.
package publish
