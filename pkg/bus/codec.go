package bus

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/messages"
)

// Bounds of a message's headers. A dead letter has some of its own besides.
const (
	maxHeaders         = 64
	maxHeaderBytes     = 64 << 10
	maxDeadHeaders     = maxHeaders + 16
	maxDeadHeaderBytes = maxHeaderBytes + 16<<10
)

type headerLimits struct{ count, bytes int }

// headerLimitsOf are the limits on headers of what a stage takes. "" stands for requests.
func headerLimitsOf(stage string) headerLimits {
	if stage == messages.StageDead {
		return headerLimits{maxDeadHeaders, maxDeadHeaderBytes}
	}
	return headerLimits{maxHeaders, maxHeaderBytes}
}

const serverPrefix = "Nats-"

// decodeHeader turns wire headers into ours. Server headers are dropped, the message id is returned
// apart. A key with several values, a malformed one or too many are a VALIDATION_ERROR.
func decodeHeader(h nats.Header, most headerLimits) (Header, string, error) {
	if len(h) > most.count {
		return nil, "", messages.Invalid("headers", fmt.Sprintf("%d headers, at most %d", len(h), most.count))
	}
	out, id, size := make(Header, len(h)), "", 0
	for k, v := range h {
		if k == messages.HeaderMsgID && len(v) == 1 {
			id = v[0]
		}
		if strings.HasPrefix(k, serverPrefix) {
			continue
		}
		if err := checkHeader(k, v); err != nil {
			return nil, "", err
		}
		if size += len(k) + len(v[0]); size > most.bytes {
			return nil, "", messages.Invalid("headers", fmt.Sprintf("over %d bytes", most.bytes))
		}
		out[k] = v[0]
	}
	return out, id, nil
}

func checkHeader(key string, values []string) error {
	if !validKey(key) {
		return messages.Invalid("headers", fmt.Sprintf("key %.64q is malformed", key))
	}
	if len(values) != 1 {
		return messages.Invalid("headers", fmt.Sprintf("%.64s has %d values", key, len(values)))
	}
	if !validValue(values[0]) {
		return messages.Invalid("headers", fmt.Sprintf("the value of %.64s is malformed", key))
	}
	return nil
}

// validKey allows the visible ASCII of a header name.
func validKey(key string) bool {
	if key == "" || len(key) > 128 {
		return false
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return true
}

// validValue allows UTF-8 without control characters except tab.
func validValue(v string) bool {
	for i := range len(v) { // no byte of a longer rune is one of these
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(v)
}

// checkScope compares the headers that repeat the subject's tenant and knowledge base.
func checkScope(h Header, tenant, kb string) error {
	if v, ok := h[messages.HeaderTenant]; ok && v != tenant {
		return messages.Invalid(messages.HeaderTenant, "differs from the subject")
	}
	if v, ok := h[messages.HeaderKB]; ok && v != kb {
		return messages.Invalid(messages.HeaderKB, "differs from the subject")
	}
	return nil
}

// encode returns m as it goes on the wire. h holds trace context and becomes the message's: what m has wins.
func encode(m Message, h nats.Header) (*nats.Msg, error) {
	if m.Subject == "" || strings.ContainsAny(m.Subject, " \t\r\n*>") {
		return nil, fmt.Errorf("subject %q cannot be published to", m.Subject)
	}
	if m.ID == "" || !validValue(m.ID) {
		return nil, errors.New("message without a usable id")
	}
	values := make([]string, 0, len(m.Header)+1) // the one value of each key
	set := func(key, value string) {
		values = append(values, value)
		h[key] = values[len(values)-1 : len(values) : len(values)]
	}
	for k, v := range m.Header {
		if strings.HasPrefix(k, serverPrefix) {
			continue
		}
		if !validKey(k) || !validValue(v) {
			return nil, fmt.Errorf("header %.64q is malformed", k)
		}
		set(k, v)
	}
	set(messages.HeaderMsgID, m.ID)
	return &nats.Msg{Subject: m.Subject, Header: h, Data: m.Body}, nil
}
