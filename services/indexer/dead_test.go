package indexer_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/indexer/internal/dead"
)

// created is when the dead-letter stream of these tests was.
var created = time.Unix(1_700_000_000, 0)

// deadSubmit is the letter of a submit that intake refused, as the bus writes it.
func deadSubmit(seq uint64, body string, header map[string]string) bus.Delivery {
	h := bus.Header{
		messages.HeaderDeadCode: string(messages.CodeValidation), messages.HeaderDeadReason: "is not a string", messages.HeaderDeadField: "text",
		messages.HeaderDeadStage: messages.StageIntake, messages.HeaderDeadStream: messages.StreamDocs, messages.HeaderDeadSeq: "7",
		messages.HeaderDeadTries: "1", messages.HeaderDeadSubject: "weir.docs.submit.3.acme.docs",
	}
	maps.Copy(h, header)
	return bus.Delivery{
		Subject: messages.DeadSubject(messages.StageIntake, tenant, "docs"), Tenant: tenant, KB: "docs", Header: h, Body: []byte(body),
		Stream: messages.StreamDead, StreamCreated: created, Sequence: seq, Delivered: 1,
	}
}

// deadWork is the letter of work on a version.
func deadWork(seq uint64, stage string, ref messages.Ref) bus.Delivery {
	d := deadSubmit(seq, "", map[string]string{
		messages.HeaderDeadCode: string(messages.CodeEmbeddingRejected), messages.HeaderDeadReason: "no", messages.HeaderDeadStage: stage,
		messages.HeaderDeadTries: "5", messages.HeaderDeadSubject: messages.WorkSubject(stage, ref.Tenant, ref.KB),
	})
	d.Subject = messages.DeadSubject(stage, tenant, "docs")
	d.Body = fmt.Appendf(nil, `{"tenant":%q,"kb":%q,"kbId":%d,"generation":%d,"subspace":%q,"docId":%q,"docKey":%d,"version":%d,"run":%d,"chunks":[{"text":"secret"}]}`,
		ref.Tenant, ref.KB, ref.KBID, ref.Generation, ref.Subspace, ref.DocID, ref.DocKey, ref.Version, ref.Run)
	return d
}

// record hands a letter to the dead stage.
func (l *lab) record(d bus.Delivery) []bus.Message {
	l.t.Helper()
	out, err := dead.New(l.store).Handle(l.t.Context(), d)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func TestARefusedSubmitIsRecordedAndTold(t *testing.T) {
	l := newLab(t)
	for i, c := range []struct {
		name          string
		body          string
		header        map[string]string
		doc, subspace string
		submit        string
	}{
		{"JSON", `{"docId":"victim","subspace":"left","text":7}`, nil, "victim", "left", "WEIR_DOCS:7"},
		{"JSON with _id", `{"_id":"victim","text":7}`, map[string]string{messages.HeaderDeadMsgID: "pub-1"}, "victim", "", "pub-1"},
		{"raw", "anything", map[string]string{messages.HeaderDocID: "a%20b%2Fc", messages.HeaderSubspace: "left"}, "a b/c", "left", "WEIR_DOCS:7"},
		{"raw, not percent-encoded", "anything", map[string]string{messages.HeaderDocID: "100%"}, "", "", "WEIR_DOCS:7"},
		{"raw with U+0000", "anything", map[string]string{messages.HeaderDocID: "a%00b"}, "", "", "WEIR_DOCS:7"},
		{"cut JSON", `{"docId":"victim","text":"aaaa`, map[string]string{messages.HeaderDeadTruncated: "99999"}, "", "", "WEIR_DOCS:7"},
		{"no JSON", "\xff\x00", nil, "", "", "WEIR_DOCS:7"},
		{"id too long", `{"docId":"` + strings.Repeat("x", messages.MaxDocIDBytes+1) + `"}`, nil, "", "", "WEIR_DOCS:7"},
		{"no text as subspace", `{"docId":"victim","subspace":"a\nb"}`, nil, "victim", "", "WEIR_DOCS:7"},
	} {
		out := l.record(deadSubmit(uint64(i+1), c.body, c.header)) //nolint:gosec // small
		events := eventsOf(t, out)
		if len(events) != 1 {
			t.Fatalf("%s: got %d events, want one", c.name, len(events))
		}
		e := events[0]
		if e.Status != messages.StatusFailed || e.DocID != c.doc || e.Subspace != c.subspace || e.SubmitID != c.submit || e.Version != 0 ||
			e.Error == nil || e.Error.Code != messages.CodeValidation || e.Error.Field != "text" || e.Error.Stage != messages.StageIntake || e.Attempt != 1 {
			t.Errorf("%s: got %+v (%v)", c.name, e, e.Error)
		}
		if want := messages.EventSubject(tenant, "docs", c.doc, messages.StatusFailed); out[0].Subject != want {
			t.Errorf("%s: told on %s, want %s", c.name, out[0].Subject, want)
		}
		if again := l.record(deadSubmit(uint64(i+1), c.body, c.header)); !slices.Equal(names(again), names(out)) { //nolint:gosec // small
			t.Errorf("%s, delivered again: got %v, want %v", c.name, names(again), names(out))
		}
		if n := l.count("SELECT count(*) FROM dead_letters WHERE source LIKE '%/' || $1::text", strconv.Itoa(i+1)); n != 1 {
			t.Errorf("%s: recorded %d times, want once", c.name, n)
		}
	}
}

func TestALetterWithoutHeadersIsRecordedAllTheSame(t *testing.T) {
	l := newLab(t)
	d := bus.Delivery{Subject: "weir.dlq.parse.acme.docs", Tenant: tenant, KB: "docs", StreamCreated: created, Sequence: 9}
	out := l.record(d)
	if len(out) != 1 || l.count("SELECT count(*) FROM dead_letters WHERE attempts = 0 AND headers = '{}'") != 1 {
		t.Errorf("got %v, want it recorded and told", names(out))
	}
}

func TestALetterFailsItsVersionOnceAndTellsEachSubmit(t *testing.T) {
	l := newLab(t)
	ref := l.staged("doc", "one")
	l.submit("doc", "one") // answered by the same version
	out := l.record(deadWork(1, messages.StageEmbed, ref))
	var told []string
	for _, e := range eventsOf(t, out) {
		told = append(told, e.SubmitID)
		if e.Status != messages.StatusFailed || e.Version != 1 || e.KBID != l.kb.ID || e.Error.Code != messages.CodeEmbeddingRejected || e.Error.Stage != messages.StageEmbed || e.Attempt != 5 {
			t.Errorf("got %+v (%v)", e, e.Error)
		}
	}
	if !slices.Equal(told, []string{"m1", "m2"}) || out[0].ID == out[1].ID {
		t.Errorf("told %v, want m1 and m2 in messages of their own", told)
	}
	d := l.document("doc")
	if d.Status != messages.StatusFailed || d.Error == nil || d.Error.Code != messages.CodeEmbeddingRejected {
		t.Errorf("got %s (%v), want Failed with the error", d.Status, d.Error)
	}
	if again := l.record(deadWork(1, messages.StageEmbed, ref)); !slices.Equal(names(again), names(out)) {
		t.Errorf("delivered again: got %v, want %v", names(again), names(out))
	}
	// A second letter of the version, of another part, changes nothing and tells the same once more.
	other := l.record(deadWork(2, messages.StageIndex, ref))
	if !slices.Equal(names(other), names(out)) || l.document("doc").Error.Code != messages.CodeEmbeddingRejected {
		t.Errorf("another letter: got %v, want %v", names(other), names(out))
	}
	if n := l.count("SELECT count(*) FROM dead_letters"); n != 2 {
		t.Errorf("got %d letters, want 2", n)
	}
}

func TestEachRunOfAVersionFailsWithEventsOfItsOwn(t *testing.T) {
	l := newLab(t)
	ref := l.staged("doc", "one")
	first := l.record(deadWork(1, messages.StageEmbed, ref))
	again, ok, err := l.store.ReopenVersion(t.Context(), tenant, "docs", ref.Subspace, "doc", 1)
	if err != nil || !ok {
		t.Fatalf("got %v (%v), want it taken up again", ok, err)
	}
	if _, err := l.store.BeginParse(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	second := l.record(deadWork(2, messages.StageEmbed, again))
	if len(first) != 1 || len(second) != 1 || first[0].ID == second[0].ID || first[0].Subject != second[0].Subject {
		t.Errorf("got %v and %v, want one event each with ids of their own", names(first), names(second))
	}
}

func TestALetterOfAVersionThatEndedOtherwiseFailsNothing(t *testing.T) {
	l := newLab(t)
	old := l.staged("doc", "old")
	next := l.staged("doc", "new")
	if out := l.record(deadWork(1, messages.StageEmbed, old)); len(out) != 0 {
		t.Errorf("of an overtaken version: got %v, want nothing", names(out))
	}
	if _, err := l.indexing().Handle(t.Context(), marshal(t, indexWork(next, 0, 1, 0))); err != nil {
		t.Fatal(err)
	}
	if out := l.record(deadWork(2, messages.StageEmbed, next)); len(out) != 0 {
		t.Errorf("of a live version: got %v, want nothing", names(out))
	}
	foreign := next
	foreign.KBID++
	if out := l.record(deadWork(3, messages.StageEmbed, foreign)); len(out) != 0 {
		t.Errorf("of another knowledge base: got %v, want nothing", names(out))
	}
	if d := l.document("doc"); d.Status != messages.StatusReady || l.count("SELECT count(*) FROM dead_letters") != 3 {
		t.Errorf("got %s, want Ready and all three recorded", d.Status)
	}
}
