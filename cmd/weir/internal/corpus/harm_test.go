package corpus_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-project/weir/cmd/weir/internal/corpus"
)

// harm publishes randomly damaged files, a few at a time, and tells whether each ended as it may.
func (l *lab) harm(dir string, expected []corpus.Expectation, n int) bool {
	var all errgroup.Group
	all.SetLimit(6)
	began, wrong := time.Now(), make([]string, n)
	slowest := make([]time.Duration, n)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same damage each time
	for i := range n {
		e := expected[random.IntN(len(expected))]
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.File)))
		if err != nil {
			l.t.Fatal(err)
		}
		data = broken(random, data)
		all.Go(func() error {
			id, start := strconv.Itoa(i)+"-"+filepath.Base(e.File), time.Now()
			l.publish("harm", id, data)
			end, err := l.wait("harm/" + id)
			slowest[i] = time.Since(start)
			o := corpus.Outcome{Expect: corpus.Expectation{File: id, Kind: corpus.KindDamaged}, Status: end.Status, Peak: l.report(id).PeakBytes}
			if end.Error != nil {
				o.Code = end.Error.Code
			}
			if err != nil {
				o.Faults = append(o.Faults, err.Error())
			}
			if o.Settle(corpus.Limits{Wall: patience, Peak: 1 << 30, Behind: time.Minute}); !o.Passed() {
				wrong[i] = id + ": " + strings.Join(o.Faults, "; ")
			}
			return nil
		})
	}
	_ = all.Wait() // none fails
	bad := 0
	for i := range wrong {
		if wrong[i] != "" {
			bad++
			fmt.Println("damaged:", wrong[i])
		}
		slowest[0] = max(slowest[0], slowest[i])
	}
	fmt.Printf("bar: %d randomly damaged files in %.0f s, slowest %.1f s, %d did not end as they may\n", n, time.Since(began).Seconds(), slowest[0].Seconds(), bad)
	return bad == 0
}

// broken damages a file in one of a few ways.
func broken(random *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) == 0 {
		return data
	}
	from := random.IntN(len(data))
	to := min(len(data), from+1+random.IntN(1+len(data)/4))
	switch random.IntN(6) {
	case 0: // single bytes
		for range 1 + random.IntN(20) {
			data[random.IntN(len(data))] = byte(random.Uint32())
		}
	case 1: // cut short
		data = data[:from]
	case 2: // a hole
		clear(data[from:to])
	case 3: // a part is missing
		data = append(data[:from], data[to:]...)
	case 4: // a part is there twice
		data = append(data[:to:to], data[from:]...)
	default: // noise
		for i := from; i < to; i++ {
			data[i] = byte(random.Uint32())
		}
	}
	return data
}
