package chaos_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// seed decides who is killed and when; WEIR_CHAOS_SEED replaces it, to look for trouble elsewhere.
const seed = 20

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("WEIR_CHAOS_SEED")
	if text == "" {
		return seed
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("WEIR_CHAOS_SEED: %v", err)
	}
	return n
}

func TestKilledProcessesLeaveTheSameRows(t *testing.T) {
	bin, pg := build(t), startPostgres(t)
	var want []string
	t.Run("undisturbed", func(t *testing.T) {
		w := newWorld(t, bin, pg, "undisturbed")
		run(w, func(batch []submit) { w.send(batch) })
		want = w.state()
	})
	if t.Failed() {
		return
	}
	t.Run("killed", func(t *testing.T) {
		w := newWorld(t, bin, pg, "killed")
		k := newKiller(w, seedOf(t))
		run(w, k.send)
		k.check()
		if d := difference(w.state(), want); d != "" {
			t.Errorf("what the killed run left differs from the undisturbed one: %s", d)
		}
		w.answers()
		w.publishAgain()
	})
}

// run publishes every document, then changes, then what was deleted anew, each when the one before is
// accepted, so that the versions are the same in every run. send may do more than publish.
func run(w *world, send func([]submit)) {
	w.t.Helper()
	all := first()
	send(all)
	versions := map[string]int64{}
	for i := range documents {
		versions[docID(i)] = 1
	}
	w.untilAccepted("first revisions", versions)
	changed, again := changes()
	send(changed)
	for _, m := range changed {
		versions[m.doc]++
	}
	w.untilAccepted("changes", versions)
	send(again)
	for _, m := range again {
		versions[m.doc]++
	}
	w.untilAccepted("deleted documents", versions)
	w.untilReady()
	w.checkEvents(all, changed, again)
}

// answers asks the retriever for words that stand in one document only.
func (w *world) answers() {
	w.t.Helper()
	for _, i := range []int{0, 1, 7, documents - 1} {
		mark := mark(i, 0, latest(i))
		var reply messages.RetrieveReply
		testkit.Eventually(w.t, func() (err error) { // the retriever may have been the last that was killed
			reply, err = call[messages.RetrieveReply](w, kb, messages.OpRetrieve, messages.RetrieveRequest{
				Query:         &messages.RetrievalQuery{Type: messages.QueryText, Text: mark},
				Configuration: &messages.RetrievalConfiguration{SearchType: []messages.SearchType{messages.FullText}},
			})
			return err
		})
		if len(reply.Results) != 1 || reply.Results[0].DocID != docID(i) {
			w.t.Errorf("ask for %s: got %d results, want one of %s", mark, len(reply.Results), docID(i))
		}
	}
}

// publishAgain publishes what every document holds once more: that changes no row but receipts and embeds
// nothing.
func (w *world) publishAgain() {
	w.t.Helper()
	before, state, texts := w.rows(), w.state(), w.fake.Texts()
	list := make([]submit, documents)
	for i := range list {
		list[i] = publish(i, latest(i))
		list[i].id += "-again"
	}
	w.send(list)
	w.checkEvents(list)
	if d := difference(w.rows(), before); d != "" {
		w.t.Errorf("publishing the same again changed rows: %s", d)
	}
	if d := difference(w.state(), state); d != "" {
		w.t.Errorf("publishing the same again changed what is held: %s", d)
	}
	if n := w.fake.Texts() - texts; n != 0 {
		w.t.Errorf("publishing the same again embedded %d texts, want none", n)
	}
}
