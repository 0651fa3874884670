package up

import (
	"log/slog"
	"sync"
	"time"

	"github.com/weir-project/weir/pkg/service/statedir"
)

// record keeps run.json up to date. It is safe for concurrent use. A write that fails is logged, and the
// run goes on: what it cost is a stale `weir status`.
type record struct {
	dir    statedir.Dir
	logger *slog.Logger

	mu  sync.Mutex
	run statedir.Run
}

// change applies a change and writes the file.
func (r *record) change(change func(*statedir.Run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.run)
	if err := r.dir.WriteRun(r.run); err != nil {
		r.logger.Error("cannot record the run", "err", err)
	}
}

// part changes what is recorded of a part, which is added when it is new.
func (r *record) part(name string, change func(*statedir.Part)) {
	r.change(func(run *statedir.Run) {
		for i := range run.Parts {
			if run.Parts[i].Name == name {
				changePart(&run.Parts[i], change)
				return
			}
		}
		p := statedir.Part{Name: name}
		changePart(&p, change)
		run.Parts = append(run.Parts, p)
	})
}

func changePart(p *statedir.Part, change func(*statedir.Part)) {
	before := p.State
	change(p)
	if p.State != before {
		p.Since = time.Now().UTC().Truncate(time.Second)
	}
}

// snapshot returns a copy.
func (r *record) snapshot() statedir.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run
	run.Parts = append([]statedir.Part(nil), r.run.Parts...)
	return run
}
