// Package pdf gets text with its places out of PDF files.
//
// Two engines read them. PDFium, compiled to WebAssembly, runs in a sandbox inside this process: it sees
// no file system, its memory is capped, and a fault in it is a trap. ledongthuc/pdf is pure Go and light,
// but loses word spaces and whole encodings, so what it gives passes a gate of signs that text is wrong
// before it is believed; docs/adr/0006-pdf-engines.md has the measurements that made PDFium the default.
//
// Neither engine is safe in a long-lived process: files exist that make them loop, or the Go one
// overflow the stack. Package worker runs this package in a process for one document.
//
// Runtime and File are for one goroutine at a time.
package pdf
