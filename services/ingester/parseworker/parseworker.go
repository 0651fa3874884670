// Package parseworker lets a binary serve as the process that reads a document.
//
// Every program that runs the ingester, and TestMain of every test that has documents read, calls Main first.
package parseworker

import "github.com/weir-project/weir/services/ingester/internal/worker"

// Main takes the process over and does not return when it was started to read a document. Otherwise it
// returns at once. Call it before anything else: flags, logging, configuration.
func Main() { worker.Main() }
