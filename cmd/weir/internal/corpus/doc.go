// Package corpus judges what the ingester makes of a folder of files with known contents.
//
// The folder has an expect.jsonl, one object a line: which phrases a file must hold, on which page, slide or
// sheet, under which headings, in which order, or how it must fail. `make corpus CORPUS=DIR` publishes every
// file to the real services (this package's test runs them in process, on a Postgres and a NATS server of
// its own), reads the chunks back through the public operations, and prints a line a file.
package corpus
