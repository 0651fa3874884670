// Package config decides how a request is run: the request's own configuration over the knowledge
// base's over the system's, leaf by leaf, all of it checked. It is pure.
package config

// Limits bound what a request may ask for.
type Limits struct {
	QueryRunes int // characters of the query text
	Candidates int // N1 and N2
	Results    int // N3
	Subspaces  int // names in a request
}

// Default returns the usual limits.
func Default() Limits {
	return Limits{QueryRunes: 4096, Candidates: 1000, Results: 1000, Subspaces: 32}
}

// Tablestore returns the limits of the service whose wire format is spoken here.
func Tablestore() Limits {
	return Limits{QueryRunes: 128, Candidates: 100, Results: 100, Subspaces: 32}
}

// Preset returns limits by name: default or tablestore.
func Preset(name string) (Limits, bool) {
	switch name {
	case "", "default":
		return Default(), true
	case "tablestore":
		return Tablestore(), true
	}
	return Limits{}, false
}
