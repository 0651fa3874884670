package messages

import "encoding/json"

// Envelope is the body of every reply to a request, errors included (D-24). On success Code is
// SUCCESS and Data the operation's result; otherwise Data is absent or what could be had.
type Envelope struct {
	Code      Code            `json:"code"`
	Message   string          `json:"message"`
	RequestID string          `json:"requestId"`
	Field     string          `json:"field,omitempty"` // path of the offending field
	Limit     int             `json:"limit,omitempty"` // most that is allowed there, of a count above it
	Data      json.RawMessage `json:"data,omitempty"`
}

// Err returns the error of a reply, nil for SUCCESS.
func (e Envelope) Err() error {
	if e.Code == CodeSuccess {
		return nil
	}
	return &Error{Code: e.Code, Message: e.Message, Field: e.Field, Limit: e.Limit}
}

// Encode gives the envelope as JSON. Data must be valid JSON: it is taken over as it is, where
// json.Marshal would look at every byte of it again.
func (e Envelope) Encode() ([]byte, error) {
	data := e.Data
	e.Data = nil
	head, err := json.Marshal(e)
	if err != nil || len(data) == 0 {
		return head, err
	}
	const key = `,"data":`
	out := make([]byte, 0, len(head)+len(key)+len(data))
	out = append(out, head[:len(head)-1]...)
	out = append(out, key...)
	out = append(out, data...)
	return append(out, '}'), nil
}

// Failure is the envelope of an error.
func Failure(e *Error, requestID string) Envelope {
	return Envelope{Code: e.Code, Message: e.Message, Field: e.Field, Limit: e.Limit, RequestID: requestID}
}
