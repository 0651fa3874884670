package messages

import (
	"strings"
	"testing"
	"time"
)

func TestStagesAndStreamsFitTogether(t *testing.T) {
	streams := map[string]Stream{}
	for _, s := range Streams() {
		if _, twice := streams[s.Name]; twice || len(s.Subjects) == 0 || s.MaxBytes <= 0 {
			t.Errorf("stream %s is twice in the table, or has no subjects or no size", s.Name)
		}
		if s.Retention == WorkQueue && (s.DropOld || s.MaxAge != 0) {
			t.Errorf("stream %s of work drops work", s.Name)
		}
		streams[s.Name] = s
	}
	durables := map[string]bool{}
	for _, st := range Stages() {
		if streams[st.Stream].Retention != WorkQueue {
			t.Errorf("stage %s takes from %s, which is no work queue", st.Name, st.Stream)
		}
		if st.Lanes < 1 || st.AckWait <= 0 || st.MaxTries < 1 || st.Timeout <= 0 || st.BackoffMin <= 0 || st.BackoffMax < st.BackoffMin {
			t.Errorf("stage %s leaves something open: %+v", st.Name, st)
		}
		for lane := range st.Lanes {
			key := st.Stream + " " + st.Durable(lane)
			if durables[key] {
				t.Errorf("two consumers are called %s", key)
			}
			durables[key] = true
		}
		if got := StageNamed(st.Name); got != st {
			t.Errorf("StageNamed(%s) = %+v", st.Name, got)
		}
	}
}

// Every message of work is handed to exactly one lane of its stage, and stored by exactly one stream.
func TestEverySubjectHasOneStreamAndOneLane(t *testing.T) {
	subjects := []string{"weir.docs.submit.3.acme.manuals", "weir.docs.delete.0.acme.manuals"}
	for _, stage := range []string{StageParse, StageEmbed, StageIndex} {
		for _, kb := range []string{"a", "b", "c", "manuals", "_x"} {
			subjects = append(subjects, WorkSubject(stage, "acme", kb))
		}
	}
	for _, stage := range []string{StageIntake, StageParse, StageEmbed, StageIndex} {
		subjects = append(subjects, DeadSubject(stage, "acme", "manuals"))
	}
	for _, subject := range subjects {
		lanes := 0
		for _, st := range Stages() {
			for lane := range st.Lanes {
				if subjectMatches(st.FilterSubject(lane), subject) {
					lanes++
				}
			}
		}
		if lanes != 1 {
			t.Errorf("%s is handed to %d lanes", subject, lanes)
		}
	}
	for _, subject := range append(subjects[2:], SubmitSubject("acme", "manuals"), DeleteSubject("acme", "manuals"), EventSubject("acme", "manuals", "a", StatusReady)) {
		stored := 0
		for _, s := range Streams() {
			for _, pattern := range s.Subjects {
				if subjectMatches(pattern, subject) {
					stored++
				}
			}
		}
		if stored != 1 {
			t.Errorf("%s is stored %d times", subject, stored)
		}
	}
}

// subjectMatches is the meaning of NATS wildcards.
func subjectMatches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s) || token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

// A message must be recognised as a repetition for longer than anybody tries to publish it.
func TestWorkIsDeduplicatedForAnHour(t *testing.T) {
	for _, s := range Streams() {
		if s.Name != StreamDocs && s.Name != StreamAdvisory && s.Duplicates < time.Hour {
			t.Errorf("%s: window %s", s.Name, s.Duplicates)
		}
	}
	if work := int(maxStreamMsg); work < MaxWorkBytes+32<<10 {
		t.Errorf("streams take %d bytes a message: no room for headers beside a body of %d", work, MaxWorkBytes)
	}
}

func TestStageNamedPanicsOnAnUnknownStage(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	StageNamed("chunk")
}

func TestTerminalStatuses(t *testing.T) {
	for status, want := range map[DocumentStatus]bool{
		StatusPending: false, StatusIndexing: false, StatusDeleting: false, "": false,
		StatusReady: true, StatusFailed: true, StatusDeleted: true, StatusSuperseded: true,
	} {
		if got := status.Terminal(); got != want {
			t.Errorf("%q: got %v", status, got)
		}
	}
}
