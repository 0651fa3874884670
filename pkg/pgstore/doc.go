// Package pgstore holds every SQL statement of Weir and the rules they keep: what a submit becomes,
// how a version is staged, swapped in and deleted, and how chunks are found.
//
// Fixed statements are files in queries/, one a file. Store is safe for concurrent use. Permanent
// errors are *messages.Error; everything else is the database's, and Retryable tells an outage from
// a fault.
package pgstore
