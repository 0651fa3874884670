package publish

import (
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Result is what became of one document.
type Result struct {
	Name      string                  `json:"name"`
	DocID     string                  `json:"docId,omitempty"`
	Subspace  string                  `json:"subspace,omitempty"`
	SubmitID  string                  `json:"submitId,omitempty"`
	Status    messages.DocumentStatus `json:"status"` // terminal, or Pending without waiting
	Version   int64                   `json:"version,omitempty"`
	Unchanged bool                    `json:"unchanged,omitempty"`
	Chunks    int                     `json:"chunks,omitempty"`
	Reused    int                     `json:"reused,omitempty"`
	Warnings  []string                `json:"warnings,omitempty"`
	Error     *messages.Error         `json:"error,omitempty"`
	Millis    int64                   `json:"ms"` // from sending to the end
}

// Failed reports whether the document is not searchable in the version that was sent, for its own sake.
func (r Result) Failed() bool { return r.Status == messages.StatusFailed }

// Counts are how many documents are where.
type Counts struct {
	Found      int `json:"documents"`
	Queued     int `json:"queued"` // no event yet
	Pending    int `json:"pending"`
	Indexing   int `json:"indexing"`
	Ready      int `json:"ready"`
	Unchanged  int `json:"unchanged"` // of Ready
	Superseded int `json:"superseded"`
	Failed     int `json:"failed"`
	Chunks     int `json:"chunks"` // of Ready
	Reused     int `json:"reused"` // of Chunks
}

// Open is how many documents have not ended.
func (c Counts) Open() int { return c.Queued + c.Pending + c.Indexing }

func (c *Counts) state(s messages.DocumentStatus) *int {
	switch s {
	case messages.StatusPending:
		return &c.Pending
	case messages.StatusIndexing:
		return &c.Indexing
	case messages.StatusReady:
		return &c.Ready
	case messages.StatusFailed:
		return &c.Failed
	case messages.StatusSuperseded, messages.StatusDeleted:
		return &c.Superseded
	}
	return &c.Queued
}

// permanent turns any error into one with a code.
func permanent(err error) *messages.Error {
	if e, ok := messages.AsError(err); ok {
		return e
	}
	return &messages.Error{Code: messages.CodeUnavailable, Message: err.Error()}
}

func resultOf(item Item, submitID string, began time.Time) Result {
	return Result{
		Name: item.Name, DocID: item.Submit.DocID, Subspace: item.Submit.Subspace, SubmitID: submitID,
		Millis: time.Since(began).Milliseconds(),
	}
}
