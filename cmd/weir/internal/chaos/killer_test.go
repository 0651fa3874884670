package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/embedding/fakeserver"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// kills is how many processes are killed.
const kills = 10

// killer kills parts while documents are on their way, and starts them again.
type killer struct {
	w     *world
	rng   *rand.Rand
	queue []string // whom to kill, in order
	done  map[string]int
}

// newKiller draws the order: every part once, and some of those that documents pass once more.
func newKiller(w *world, seed uint64) *killer {
	k := &killer{w: w, rng: rand.New(rand.NewPCG(seed, seed)), done: map[string]int{}}
	names := slices.Sorted(maps.Keys(w.parts))
	k.queue = slices.Clone(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == "retriever" })
	for len(k.queue) < kills {
		k.queue = append(k.queue, names[k.rng.IntN(len(names))])
	}
	k.rng.Shuffle(len(k.queue), func(i, j int) { k.queue[i], k.queue[j] = k.queue[j], k.queue[i] })
	if first := slices.Index(k.queue, caught); first >= killsOfFirst { // what is published then has to be embedded
		early := k.rng.IntN(killsOfFirst)
		k.queue[first], k.queue[early] = k.queue[early], k.queue[first]
	}
	return k
}

// caught is who is killed once while it surely has work in its hands, so that a fast machine, which may be done
// with everything before each of the other kills, does not make this test one of restarts.
const caught = "embedder"

// Of the kills, most meet the first revisions, whose batch is the largest.
const (
	killsOfFirst = 6
	killsOfOther = 2
)

// send publishes a batch in pieces and kills somebody after each.
func (k *killer) send(batch []submit) {
	pieces := killsOfOther
	if len(batch) == documents {
		pieces = killsOfFirst
	}
	size := (len(batch) + pieces - 1) / pieces
	for piece := range slices.Chunk(batch, size) {
		name := k.queue[0]
		k.queue = k.queue[1:]
		if name == caught && k.done[name] == 0 {
			k.catch(piece)
		} else {
			k.strike(name, piece)
		}
		k.done[name]++
		k.w.t.Logf("killed %s and started it again", name)
	}
}

// strike publishes and kills some time later.
func (k *killer) strike(name string, piece []submit) {
	k.w.send(piece)
	k.wait(50*time.Millisecond, 500*time.Millisecond)
	k.w.parts[name].kill()
	k.wait(0, 500*time.Millisecond)
	k.w.parts[name].start()
}

// catch publishes and kills the embedder while the embedding server keeps it waiting, and looks that what it had
// in hand is handed out again.
func (k *killer) catch(piece []submit) {
	k.w.fake.Always(&fakeserver.Fault{Hang: true})
	defer k.w.fake.Always(nil)
	k.w.send(piece)
	before := excess(k.untilEmbedding("handed out", func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending > 0 }))
	k.w.parts[caught].kill()
	k.w.fake.Always(nil)
	k.w.parts[caught].start()
	now := k.untilEmbedding("handed out again", func(i *jetstream.ConsumerInfo) bool { return excess(i) > before })
	k.w.redelivered[messages.StageEmbed] = max(k.w.redelivered[messages.StageEmbed], excess(now)-before)
}

// untilEmbedding waits until some messages of the embedder are in a state.
func (k *killer) untilEmbedding(what string, is func(*jetstream.ConsumerInfo) bool) (info *jetstream.ConsumerInfo) {
	k.w.t.Helper()
	testkit.Eventually(k.w.t, func() (err error) {
		ctx, cancel := context.WithTimeout(k.w.t.Context(), 5*time.Second)
		defer cancel()
		info, err = k.w.consumer(ctx, messages.StageNamed(messages.StageEmbed))
		if err == nil && !is(info) {
			err = fmt.Errorf("no message to be embedded is %s: %+v", what, info)
		}
		return err
	})
	return info
}

// wait lets a random time pass: when something dies is what this test is about.
func (k *killer) wait(from, to time.Duration) {
	until := time.Now().Add(from + time.Duration(k.rng.Int64N(int64(to-from))))
	for time.Now().Before(until) {
		k.w.lookForRedeliveries()
		time.Sleep(10 * time.Millisecond) // the moment of a kill is drawn, not waited for
	}
}

// check fails when the kills were fewer than promised or met nothing.
func (k *killer) check() {
	k.w.t.Helper()
	total := 0
	for name := range k.w.parts {
		if k.done[name] == 0 {
			k.w.t.Errorf("%s was never killed", name)
		}
		total += k.done[name]
	}
	if total < kills {
		k.w.t.Errorf("%d kills, want %d", total, kills)
	}
	k.w.t.Logf("kills: %v; messages delivered again, by stage, at least: %v", k.done, k.w.redelivered)
	for _, n := range k.w.redelivered {
		if n > 0 {
			return
		}
	}
	k.w.t.Error("no message was delivered twice: the kills met nothing on its way")
}
