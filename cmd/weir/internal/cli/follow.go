package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/weir-project/weir/cmd/weir/internal/progress"
	"github.com/weir-project/weir/cmd/weir/internal/publish"
	"github.com/weir-project/weir/pkg/guard"
)

// redrawEvery is the pause between two drawings of progress bars.
const redrawEvery = 100 * time.Millisecond

// follow shows the counts on d until stop is called, which shows them once more and returns the first error
// of writing.
func follow(d *progress.Display, counts func() publish.Counts) (stop func() error) {
	began := time.Now()
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			d.Show(publishView(counts(), time.Since(began)))
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceValue(func() error {
		close(quit)
		<-over
		return d.Close(publishView(counts(), time.Since(began)))
	})
}

func publishView(c publish.Counts, took time.Duration) progress.View {
	v := progress.View{Total: c.Found, Rows: []progress.Row{
		{Label: "Queued", Count: c.Queued},
		{Label: "Pending", Count: c.Pending},
		{Label: "Indexing", Count: c.Indexing},
		{Label: "Ready", Count: c.Ready},
		{Label: "Failed", Count: c.Failed},
	}}
	if c.Superseded > 0 {
		v.Rows = append(v.Rows, progress.Row{Label: "Superseded", Count: c.Superseded})
	}
	if done := c.Found - c.Open(); done > 0 && took > time.Second {
		v.Note = fmt.Sprintf("%.1f/s", float64(done)/took.Seconds())
	}
	return v
}

// display is where progress goes: the output for people, standard error beside JSON, and there only on a
// terminal.
func (s *Session) display() *progress.Display {
	w := s.Out
	if s.JSON {
		if w = s.Err; !s.terminal(w) {
			w = io.Discard
		}
	}
	return progress.New(w, s.terminal(w), nil)
}

// note tells on d what slows a run down; beside JSON it is a line of JSON on standard error.
func (s *Session) note(d *progress.Display, text string) {
	if !s.JSON {
		d.Line("Note: %s", text)
		return
	}
	_ = json.NewEncoder(s.Err).Encode(map[string]string{"note": text}) // there is no place to complain
}

// publishItems runs p over the items that find sends until it returns.
func publishItems(ctx context.Context, p *publish.Publisher, find func(context.Context, chan<- publish.Item) error) error {
	items := make(chan publish.Item)
	g, ctx := guard.WithContext(ctx)
	g.Go(func() error { return find(ctx, items) })
	g.Go(func() error { return p.Run(ctx, items) })
	return g.Wait()
}
