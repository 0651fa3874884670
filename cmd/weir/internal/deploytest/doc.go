// Package deploytest holds tests of what lies in deploy/ and docs/: the sample of NATS users and the roles of
// Postgres are run with every service and two tenants, and settings, metrics and links that the documents name
// are looked up in the code. It has no code of its own.
package deploytest
