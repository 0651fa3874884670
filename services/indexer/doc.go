// Package indexer makes documents searchable and keeps the record straight.
//
// It consumes the index stage (vectors of a version: staged, and the version swapped in when it is
// complete, many versions in one transaction) and the dead letters of every stage. It is the only
// writer of Ready and Failed, and the only part that creates and drops tables: it serves the requests
// that change knowledge bases (kb_create, kb_update, kb_delete) and those about dead letters.
//
// In the background it reconciles (work whose messages were lost is published again, from what
// Postgres knows), merges posting segments, purges deleted knowledge bases and sweeps. Any number of
// replicas may run; each step is fenced in SQL.
package indexer
