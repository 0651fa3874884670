package gate

import "fmt"

// Open lifts the gate.
func Open(n int) error {
	if n < 0 {

		return fmt.Errorf("gate %d", n)
	}
	return nil
}

func Shut() {}
