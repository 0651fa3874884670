// Package pdfworker reads PDFs in a child process.
//
// The library that reads PDFs can be made to exhaust memory, overflow the stack or loop for ever by a
// few hundred bytes, and none of that can be recovered in process. So Extract starts this same binary
// with a hidden argument, an empty environment and its own process group, hands the file over standard
// input and reads frames of JSON lines from standard output. The child sets its own limits before it
// reads a byte; the parent adds a wall clock, a stall clock and a cap on output, and kills the whole
// group. A killed child is a permanent error of the document.
//
// Main must be the first thing that main, and TestMain of tests that read PDFs, call.
package pdfworker
