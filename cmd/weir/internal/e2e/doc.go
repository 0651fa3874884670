// Package e2e tests the services together: documents in at one end, answers out at the other, over a
// real NATS server and a real Postgres. It holds tests only.
package e2e
