package fusion

import "strings"

// Method names a way to fuse.
type Method string

// Methods.
const (
	Weight Method = "WEIGHT"
	RRF    Method = "RRF"
	Model  Method = "MODEL"
)

// method is a line of the table: how to check the configuration, and how to score candidates when both
// legs are active, or always. Whatever order fuse returns is sorted afterwards.
type method struct {
	name     Method
	validate func(Config) error
	fuse     func(Config, []Candidate) ([]Result, error)
	always   bool // with one active leg too, which is otherwise left as it is
}

// methods is the table of all methods. To add one, write its file and add its line.
func methods() []method {
	return []method{
		{name: Weight, validate: validateWeight, fuse: fuseWeight},
		{name: RRF, validate: validateRRF, fuse: fuseRanks},
		{name: Model, validate: validateModel, fuse: fuseModel, always: true},
	}
}

// Methods returns the names of all methods, for messages and documentation.
func Methods() []Method {
	var names []Method
	for _, m := range methods() {
		names = append(names, m.name)
	}
	return names
}

func methodOf(name Method) (method, bool) {
	for _, m := range methods() {
		if m.name == name {
			return m, true
		}
	}
	return method{}, false
}

func methodNames() string {
	var names []string
	for _, name := range Methods() {
		names = append(names, string(name))
	}
	return strings.Join(names, ", ")
}
