// Package conformance holds the suite that compares Weir with the cases of the retrieval contract. It has no
// code of its own: the cases are files under testdata, whose README.md tells their form, and the tests here
// read and run them. `make conformance` prints one line a case.
package conformance
