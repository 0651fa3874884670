package bus

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-project/weir/pkg/messages"
)

// Work returns the message of a stage about a version: its id and headers follow from ref and part.
func Work(stage, msgType string, ref messages.Ref, part int, body any) (Message, error) {
	data, err := messages.Encode(body)
	if err != nil {
		return Message{}, err
	}
	return Message{
		Subject: messages.WorkSubject(stage, ref.Tenant, ref.KB),
		ID:      ref.MsgID(stage, part),
		Header: Header{
			messages.HeaderMsgType: msgType,
			messages.HeaderTenant:  ref.Tenant,
			messages.HeaderKB:      ref.KB,
			messages.HeaderKBID:    strconv.FormatInt(ref.KBID, 10),
			messages.HeaderDoc:     url.PathEscape(ref.DocID),
			messages.HeaderVersion: strconv.FormatInt(ref.Version, 10),
		},
		Body: data,
	}, nil
}

// Event returns the message of a status event. source names the submit it answers as stored, since
// publishers use ids again: with version and status it makes the message id, so that an event told again
// is stored once.
func Event(e messages.Event, source string) (Message, error) {
	data, err := messages.Encode(e)
	if err != nil {
		return Message{}, err
	}
	return Message{
		Subject: messages.EventSubject(e.Tenant, e.KB, e.DocID, e.Status),
		ID: strings.Join([]string{
			e.Tenant, strconv.FormatInt(e.KBID, 10), e.Subspace, messages.DocToken(e.DocID), strconv.FormatInt(e.Version, 10), "event",
			string(e.Status), messages.DocToken(source),
		}, "/"),
		Header: Header{messages.HeaderMsgType: messages.TypeEvent},
		Body:   data,
	}, nil
}
