// Package embedding turns texts into vectors through any server that speaks the OpenAI embeddings
// API.
//
// A [Space] says what a vector means: model, dimensions, metric, normalisation and prefixes, and
// never where it was computed; vectors of one space may come from any endpoint that serves it.
//
// The layers, each usable alone:
//
//   - [Client]: one endpoint and model; one request, one answer, every value checked, errors sorted
//     into the kinds of errors.go.
//   - [Governor]: one per provider key; requests and tokens a minute, requests in flight, queries
//     ahead of batch work, Retry-After obeyed by everyone.
//   - [Provider]: a governor and the clients of its models; splits work into batches the server
//     accepts, learns its limits and names the texts it refuses.
//   - [Cache]: recent query vectors, one computation for equal questions asked at once.
//
// [Fake] computes deterministic vectors without a model; package fakeserver serves them over HTTP
// with scripted faults.
package embedding
