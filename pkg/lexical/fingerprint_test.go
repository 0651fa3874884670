package lexical

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const fingerprintFile = "testdata/fingerprints.txt"

// TestFingerprintsAreThoseReleased fails when an analyzer's output or tables change under the same id, be it
// by our code or by a new version of a library. The way out is a new id; -update is for an id that was never
// released.
func TestFingerprintsAreThoseReleased(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, id := range IDs() {
		a, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s %s\n", id, a.Fingerprint())
	}
	if *update {
		if err := os.WriteFile(fingerprintFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(fingerprintFile)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the output of a released analyzer changed: add a new id instead\ngot  %s\nwant %s", got.String(), want)
	}
}

func TestFingerprintSeesTheTables(t *testing.T) {
	t.Parallel()
	want := newLex1().Fingerprint()
	if again := newLex1().Fingerprint(); again != want {
		t.Errorf("second analyzer: got fingerprint %s, want %s", again, want)
	}
	fewer := newLex1()
	delete(fewer.stop, "ourselves")
	if fewer.Fingerprint() == want {
		t.Error("one stop word less: got the same fingerprint, want another")
	}
	unfolded := newLex1()
	unfolded.han.index['龜'-hanFoldFirst] = 0
	if unfolded.Fingerprint() == want {
		t.Error("one character less folded: got the same fingerprint, want another")
	}
}
