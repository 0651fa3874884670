// Package worker reads each document in a process of its own.
//
// A few hundred bytes can make a reader exhaust memory, overflow the stack or loop for ever, and none of
// that can be recovered in process. So Pool starts this same binary with a hidden argument, an empty
// environment and its own process group, hands a document over standard input and takes frames from
// standard output: signs of progress, text, blocks, the end. A small document and what comes of it are one
// write each. The child sets its own limits (address space, processor time, stack, no files written) before
// it reads a byte of the document; the parent adds a wall clock, a progress clock and a cap on output, and
// kills the whole group. What a child dies of is a permanent error of its document. A document may have taken
// its child over, so what that says is bounded and checked: frames are no larger and take no more memory than
// they may, text is UTF-8 without U+0000, blocks partition it.
//
// A process is used for one document. The exception is small plain text: our readers of it are simple
// loops, and starting a process costs many times what such a document does, so a child that has read
// nothing else takes the next one. Whatever it cannot vouch for ends it, and so does what the parent sees to be
// more than a small text.
//
// Main must be the first thing that main, and TestMain of tests that read documents, call.
package worker
