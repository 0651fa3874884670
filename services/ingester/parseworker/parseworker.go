// Package parseworker lets a binary serve as the child process that reads PDFs.
//
// Every program that runs the ingester, and TestMain of every test that reads PDFs, calls Main first.
package parseworker

import "github.com/weir-project/weir/services/ingester/internal/parse/pdfworker"

// Main takes the process over and does not return when it was started to read a PDF. Otherwise it
// returns at once. Call it before anything else: flags, logging, configuration.
func Main() { pdfworker.Main() }
