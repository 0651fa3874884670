// Package chaos tests what Weir promises when its parts die: every service, NATS and Postgres run as
// processes of their own and are killed with SIGKILL while documents are on their way. It holds tests
// only.
package chaos
