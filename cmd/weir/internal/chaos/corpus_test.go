package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// documents is how many the runs publish.
const documents = 300

// submit is a message to be published.
type submit struct {
	id, doc, subject string
	body             []byte
}

// first is the first revision of every document.
func first() []submit {
	out := make([]submit, documents)
	for i := range out {
		out[i] = publish(i, 0)
	}
	return out
}

// changes are what the second phase publishes: new revisions of some documents and deletions of others, and
// then the deleted ones anew.
func changes() (changed, again []submit) {
	for i := range documents {
		switch latest(i) {
		case 1:
			changed = append(changed, publish(i, 1))
		case 2:
			changed = append(changed, remove(i))
			again = append(again, publish(i, 2))
		}
	}
	return changed, again
}

// latest is the revision a document has in the end.
func latest(i int) int {
	switch {
	case i%10 == 0:
		return 1
	case i%15 == 7:
		return 2
	}
	return 0
}

func docID(i int) string { return fmt.Sprintf("doc-%03d", i) }

func publish(i, revision int) submit {
	text := text(i, revision)
	body, err := messages.Encode(messages.Submit{
		DocID: docID(i), Title: fmt.Sprintf("Document %d", i), ContentType: "text/markdown", Text: &text,
	})
	if err != nil {
		panic(err)
	}
	return submit{id: fmt.Sprintf("put-%d-%d", i, revision), doc: docID(i), subject: messages.SubmitSubject(tenant, kb), body: body}
}

func remove(i int) submit {
	body, err := messages.Encode(messages.Delete{DocID: docID(i)})
	if err != nil {
		panic(err)
	}
	return submit{id: fmt.Sprintf("delete-%d", i), doc: docID(i), subject: messages.DeleteSubject(tenant, kb), body: body}
}

// sections is how many chunks a document has: one, ten, or so many that they need several messages.
func sections(i int) int {
	switch {
	case i%50 == 0:
		return 160
	case i%5 == 1:
		return 10
	}
	return 1
}

// text is Markdown with a chunk a section. A later revision changes the first section alone, so that
// most of a long document's vectors are known.
func text(i, revision int) string {
	var b strings.Builder
	for s := range sections(i) {
		if s > 0 {
			revision = 0
		}
		rng := rand.New(rand.NewPCG(uint64(i), uint64(1000*revision+s)))
		fmt.Fprintf(&b, "# Section %d\n\nMark %s.", s, mark(i, s, revision))
		for range 110 {
			fmt.Fprintf(&b, " w%d", rng.IntN(3000))
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// mark is a word that stands in one section of one revision only.
func mark(i, section, revision int) string {
	return fmt.Sprintf("mark%d", 1_000_000*(i+1)+1000*section+revision)
}
