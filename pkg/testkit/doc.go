// Package testkit gives each test its own Postgres database and its own NATS server, and helpers to
// wait without sleeping. A missing Postgres fails the test: nothing is skipped.
package testkit
