package deploytest_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/bus"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/testkit"
)

// job has a knowledge base built anew in every way, and written to meanwhile, with the rights of the samples.
func (s *site) job(t *testing.T, operator, publisher *nats.Conn) {
	ask := func(op string, in any) messages.JobInfo {
		t.Helper()
		var j messages.JobInfo
		if err := bus.Call(t.Context(), operator, messages.RPCSubject("acme", messages.TenantScope, op), nil, in, &j); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		return j
	}
	await := func(id int64, want messages.JobState) {
		t.Helper()
		testkit.Eventually(t, func() error {
			if j := ask(messages.OpJobGet, messages.JobRef{ID: id}); j.State != want {
				return fmt.Errorf("job %d is %s (%s), %+v, want %s", id, j.State, j.Reason, j.Errors, want)
			}
			return nil
		})
	}
	events := s.events(t, publisher, "acme")
	for _, doc := range []string{"j1", "j2", "j3"} {
		publish(t, publisher, "weir.docs.submit.acme.docs", fmt.Sprintf(`{"docId":%q,"text":"Document %s of a job."}`, doc, doc))
		s.await(t, events, doc, messages.StatusReady)
	}
	prefix := "another: "
	embedding, chunking := &messages.Embedding{PassagePrefix: &prefix}, &messages.Chunking{Strategy: messages.ChunkWhole}
	for name, in := range map[string]messages.StartJob{
		"copied": {}, "parsed": {Chunking: chunking}, "embedded": {Embedding: embedding}, "repaired": {Kind: messages.JobRepair},
	} {
		in.KnowledgeBaseName = "docs"
		t.Logf("%s: job %d", name, ask(messages.OpJobStart, in).ID)
		var list messages.JobList
		if err := bus.Call(t.Context(), operator, messages.RPCSubject("acme", messages.TenantScope, messages.OpJobList), nil, messages.ListJobs{}, &list); err != nil {
			t.Fatal(err)
		}
		await(list.Jobs[0].ID, messages.JobDone)
	}
	prefix = "a third: "
	j := ask(messages.OpJobStart, messages.StartJob{KnowledgeBaseName: "docs", Embedding: embedding, Manual: true, Gate: &messages.JobGate{}})
	await(j.ID, messages.JobWaiting)
	publish(t, publisher, "weir.docs.delete.acme.docs", `{"docId":"j1"}`)
	s.await(t, events, "j1", messages.StatusDeleted)
	publish(t, publisher, "weir.docs.submit.acme.docs", `{"docId":"j2","text":"Document j2, edited."}`)
	s.await(t, events, "j2", messages.StatusReady)
	ask(messages.OpJobPause, messages.JobRef{ID: ask(messages.OpJobResume, messages.ResumeJob{ID: j.ID}).ID})
	ask(messages.OpJobApprove, messages.ApproveJob{ID: j.ID})
	ask(messages.OpJobResume, messages.ResumeJob{ID: j.ID})
	await(j.ID, messages.JobDone)
	publish(t, publisher, "weir.docs.submit.acme.docs", `{"docId":"j3","text":"Document j3, edited."}`)
	s.await(t, events, "j3", messages.StatusReady)
	ask(messages.OpJobRollback, messages.JobRef{ID: j.ID})
	await(j.ID, messages.JobRolledBack)
	ask(messages.OpJobCancel, messages.JobRef{ID: ask(messages.OpJobStart, messages.StartJob{KnowledgeBaseName: "docs", Manual: true}).ID})
}
