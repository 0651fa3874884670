package bus

import (
	"runtime"
	"sync"
	"testing"
)

func TestACrewHasAsManyHandsAsEverWorkedAtOnce(t *testing.T) {
	t.Parallel()
	var c crew
	for range 3 {
		c.run(func() {})
	}
	if len(c.idle) != 1 {
		t.Errorf("%d hands after one piece of work at a time, want 1", len(c.idle))
	}
	var together, ended sync.WaitGroup
	together.Add(4)
	for range 4 {
		ended.Go(func() {
			c.run(func() {
				together.Done()
				together.Wait()
			})
		})
	}
	ended.Wait()
	if len(c.idle) != 4 {
		t.Errorf("%d hands after four pieces of work at once, want 4", len(c.idle))
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	ended.Go(func() {
		c.run(func() {
			close(begun)
			<-finish
		})
	})
	<-begun
	c.close() // the one at work ends with its work, which the leak check of this package sees
	close(finish)
	ended.Wait()
	if len(c.idle) != 0 {
		t.Errorf("%d hands after the end", len(c.idle))
	}
}

func TestAFunctionThatEndsItsGoroutineEndsNoCrew(t *testing.T) {
	t.Parallel()
	var c crew
	defer c.close()
	c.run(runtime.Goexit)
	ran := false
	c.run(func() { ran = true })
	if !ran || len(c.idle) != 1 {
		t.Errorf("ran: %v; %d hands, want 1", ran, len(c.idle))
	}
}
