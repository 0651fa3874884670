package messages

import "time"

// Event tells what became of a document's version. Every submit ends in exactly one terminal event
// (Ready, Failed or Superseded; Deleted for a delete) that carries the submit's message id.
type Event struct {
	Tenant   string         `json:"tenant"`
	KB       string         `json:"kb"`
	KBID     int64          `json:"kbId,omitempty"`
	Subspace string         `json:"subspace,omitempty"`
	DocID    string         `json:"docId,omitempty"`
	Version  int64          `json:"version,omitempty"`
	Status   DocumentStatus `json:"status"`
	// SubmitID is the Nats-Msg-Id of the submit or delete, or its stream sequence as
	// "<stream>:<seq>" where it had none.
	SubmitID  string `json:"submitId,omitempty"`
	Unchanged bool   `json:"unchanged,omitempty"` // Ready because nothing differed
	// Chunks, Reused and Tokens are left out where they are not known any more: a newer version was live before this
	// one's event could be told.
	Chunks int `json:"chunks,omitempty"`
	Reused int `json:"reused,omitempty"` // chunks whose vector was known
	Tokens int `json:"tokens,omitempty"` // tokens the embedding provider counted
	// Reactivated is how many chunks of the version before were inactive: the new one's are all active.
	Reactivated int       `json:"reactivated,omitempty"`
	Lines       *Lines    `json:"lines,omitempty"` // of a document that was split
	Warnings    []string  `json:"warnings,omitempty"`
	Error       *Error    `json:"error,omitempty"` // of Failed
	Attempt     int       `json:"attempt,omitempty"`
	At          time.Time `json:"at"`
}

// maxSubmitIDBytes bounds the ids of publishers that events repeat.
const maxSubmitIDBytes = 1000

// SubmitRef names a submit by its publisher's id, else by where its stream stored it: what events say when
// there is none, or it is over 1,000 bytes or no text.
func SubmitRef(msgID, stream string, seq uint64) string {
	if msgID != "" && len(msgID) <= maxSubmitIDBytes && ValidText("", msgID) == nil {
		return msgID
	}
	return stream + ":" + uitoa(seq)
}
