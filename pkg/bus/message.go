package bus

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weir-project/weir/pkg/messages"
)

// Header is the headers of a message: one value a key, keys case-sensitive. Keys that start with
// "Nats-" belong to the server: they are removed on receipt and never published.
type Header map[string]string

// Message is one message to publish.
type Message struct {
	Subject string
	// ID is the Nats-Msg-Id by which the stream recognises a repeated publish. Required.
	ID     string
	Header Header
	Body   []byte
}

// Ack is the proof that a message is stored.
type Ack struct {
	Stream string
	// Created is when the stream was created: with Sequence it names the message for ever, since a
	// stream that is created again starts counting anew.
	Created  time.Time
	Sequence uint64
	// Duplicate says that a message of this id had been stored before; Sequence is that one's.
	Duplicate bool
}

// Delivery is one message as it reached a handler.
type Delivery struct {
	Subject string
	// Tenant and KB are taken from the subject, which is authoritative.
	Tenant, KB string
	Header     Header
	Body       []byte
	// ID is the message's Nats-Msg-Id, empty when its publisher set none.
	ID string

	Stream        string
	StreamCreated time.Time
	Sequence      uint64
	StoredAt      time.Time
	// Delivered counts deliveries of this message, from 1.
	Delivered uint64
}

// subjectKey is the metadata key that overrides the topic of a Watermill publish.
const subjectKey = "_subject"

// Watermill returns m as a Watermill message for [Publisher.Publish]; its subject wins over the topic.
func (m Message) Watermill() *message.Message {
	w := message.NewMessage(m.ID, m.Body)
	for k, v := range m.Header {
		w.Metadata[k] = v
	}
	w.Metadata[messages.HeaderMsgID] = m.ID
	w.Metadata[subjectKey] = m.Subject
	return w
}

func fromWatermill(topic string, w *message.Message) Message {
	m := Message{Subject: topic, ID: w.UUID, Body: w.Payload, Header: Header{}}
	for k, v := range w.Metadata {
		switch k {
		case subjectKey:
			m.Subject = v
		case messages.HeaderMsgID:
			m.ID = v
		default:
			m.Header[k] = v
		}
	}
	return m
}
