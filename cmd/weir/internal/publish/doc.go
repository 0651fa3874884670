// Package publish sends documents to a knowledge base and waits until each of them is searchable or
// has failed. It needs nothing of Weir's services but their subjects, and no rights to look into streams:
// documents are published to the docs stream, and a plain subscription hears what becomes of them.
//
// Every document gets a message id of its own, by which its events are recognised. When no event comes
// for a long while (the user may not subscribe to them, or the connection was down) the states of documents are
// asked for instead.
package publish
