package e2e_test

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// otherPrefix is another space of the same model: nothing of it is known.
func otherPrefix(prefix string) *messages.Embedding {
	return &messages.Embedding{PassagePrefix: &prefix}
}

func (s *system) startJob(in messages.StartJob) messages.JobInfo {
	s.t.Helper()
	j, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobStart, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

func (s *system) job(id int64) messages.JobInfo {
	s.t.Helper()
	j, err := call[messages.JobInfo](s, messages.TenantScope, messages.OpJobGet, messages.JobRef{ID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// awaitJob waits until a job is in a state.
func (s *system) awaitJob(id int64, want messages.JobState) messages.JobInfo {
	s.t.Helper()
	var j messages.JobInfo
	testkit.Eventually(s.t, func() error {
		j = s.job(id)
		if j.State != want {
			return fmt.Errorf("job %d is %s (%s), %+v, want %s", id, j.State, j.Reason, j.Counts, want)
		}
		return nil
	})
	return j
}

func (s *system) generation(kb string) int64 {
	s.t.Helper()
	info, err := call[messages.KBInfo](s, kb, messages.OpKBGet, messages.KBRef{})
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Generation
}

// putAll publishes documents of a few chunks and waits until they are Ready.
func (s *system) putAll(kb string, n int) {
	s.t.Helper()
	ev := s.watch(kb)
	for i := range n {
		s.publish(kb, fmt.Sprintf("all-%d", i), markdown(fmt.Sprintf("doc-%d", i), sections(1+i%3, fmt.Sprintf("word%d", i))))
	}
	ev.terminal(n)
}

// eventCount is how many events a knowledge base has told.
func (s *system) eventCount(kb string) uint64 {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), messages.StreamEvents)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(s.eventsOf(kb)))
	if err != nil {
		s.t.Fatal(err)
	}
	var n uint64
	for _, c := range info.State.Subjects {
		n += c
	}
	return n
}

// chunkCount is how many chunks readers can find.
func (s *system) chunkCount(kb string) int {
	s.t.Helper()
	info, err := call[messages.KBInfo](s, kb, messages.OpKBGet, messages.KBRef{})
	if err != nil {
		s.t.Fatal(err)
	}
	return int(info.Documents.Chunks)
}
