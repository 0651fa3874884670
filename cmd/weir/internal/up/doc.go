// Package up runs Weir on one machine: an embedded NATS server, a private Postgres, the local embedding
// server and the services, or those of them that are asked for. The services run here exactly as in
// their own processes: over the bus, with connections of their own.
//
// Order of a start: lock the state directory, stop what a killed run left, start NATS, Postgres and the
// embedding server, apply migrations, create streams, try the embedding server, start the services. The
// stop goes the other way. Whatever dies is started again with growing pauses; what dies too often,
// or cannot start at all, ends the run.
package up
