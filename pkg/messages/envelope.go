package messages

import "encoding/json"

// Envelope is the body of every reply to a request, errors included (D-24). On success Code is
// SUCCESS and Data the operation's result; otherwise Data is absent or what could be had.
type Envelope struct {
	Code      Code            `json:"code"`
	Message   string          `json:"message"`
	RequestID string          `json:"requestId"`
	Field     string          `json:"field,omitempty"` // path of the offending field
	Data      json.RawMessage `json:"data,omitempty"`
}

// Err returns the error of a reply, nil for SUCCESS.
func (e Envelope) Err() error {
	if e.Code == CodeSuccess {
		return nil
	}
	return &Error{Code: e.Code, Message: e.Message, Field: e.Field}
}

// Failure is the envelope of an error.
func Failure(e *Error, requestID string) Envelope {
	return Envelope{Code: e.Code, Message: e.Message, Field: e.Field, RequestID: requestID}
}
