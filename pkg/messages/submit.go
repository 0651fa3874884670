package messages

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultSubspace is the subspace of knowledge bases without subspaces, and of submits that name none.
const DefaultSubspace = "_default"

// Limits of a submit.
const (
	MaxTitleBytes       = 4096
	MaxOSSKeyBytes      = 1024
	MaxContentTypeBytes = 256
	MaxMetadataBytes    = 64 << 10
)

// Submit is a document to be made searchable: the JSON body of weir.docs.submit and of the submit
// operation. Exactly one of Text, Data and Upload holds the content.
type Submit struct {
	Tenant            string          `json:"tenant,omitempty"`            // must equal the subject's
	KnowledgeBaseName string          `json:"knowledgeBaseName,omitempty"` // must equal the subject's
	DocID             string          `json:"docId,omitempty"`
	ID                string          `json:"_id,omitempty"` // accepted for docId
	Subspace          string          `json:"subspace,omitempty"`
	OSSKey            string          `json:"ossKey,omitempty"`
	Title             string          `json:"title,omitempty"`
	ContentType       string          `json:"contentType,omitempty"`
	Text              *string         `json:"text,omitempty"`
	Data              []byte          `json:"data,omitempty"`   // base64
	Upload            *Upload         `json:"upload,omitempty"` // content in the object store
	Metadata          json.RawMessage `json:"metadata,omitempty"`
}

// Upload refers to an object of the tenant's upload bucket, for content over the maximum payload.
// The object is removed once its content is stored.
type Upload struct {
	Object string `json:"object"`
	Size   int64  `json:"size"` // bytes
}

// UploadTTL is how long an upload that nothing took up is kept.
const UploadTTL = 24 * time.Hour

// UploadBucket is the object-store bucket of a tenant's uploads.
func UploadBucket(tenant string) string { return "weir-uploads-" + tenant }

// Delete asks for a document to be removed.
type Delete struct {
	Tenant            string `json:"tenant,omitempty"`
	KnowledgeBaseName string `json:"knowledgeBaseName,omitempty"`
	DocID             string `json:"docId"`
	Subspace          string `json:"subspace,omitempty"`
}

// SubmitReply is the verdict of the submit and delete operations: the version that was accepted, or
// that nothing changed. What becomes of it follows as an event.
type SubmitReply struct {
	DocID     string         `json:"docId"`
	Subspace  string         `json:"subspace"`
	Version   int64          `json:"version"`
	Status    DocumentStatus `json:"status"`
	SubmitID  string         `json:"submitId"`
	Unchanged bool           `json:"unchanged,omitempty"`
}

// DecodeSubmit reads a submit from either form: a JSON body, or a raw body described by headers
// (get returns "" for an absent one). It checks form and bounds; whether the knowledge base knows
// the metadata is not its business. Errors are VALIDATION_ERROR naming the field.
func DecodeSubmit(get func(string) string, body []byte) (*Submit, error) {
	s := new(Submit)
	var err error
	if get(HeaderDocID) != "" || get(HeaderOSSKey) != "" {
		s, err = submitFromHeaders(get, body)
	} else {
		err = decodeIngest(body, s)
	}
	if err != nil {
		return nil, err
	}
	if s.DocID == "" {
		s.DocID, s.ID = s.ID, ""
	}
	if s.DocID == "" && s.OSSKey != "" {
		s.DocID = IDFromOSSKey(s.Subspace, s.OSSKey)
	}
	return s, s.Validate()
}

// decodeIngest is DecodeStrict for what enters by the doors of documents: there, text that is not valid
// UTF-8 is INVALID_ENCODING, as it is inside a document.
func decodeIngest(body []byte, v any) error {
	if !utf8.Valid(body) {
		return &Error{Code: CodeInvalidEncoding, Field: "body", Message: "is not valid UTF-8"}
	}
	return DecodeStrict(body, v)
}

func submitFromHeaders(get func(string) string, body []byte) (*Submit, error) {
	s := &Submit{ContentType: get(HeaderContentType), Data: body}
	if len(body) == 0 {
		s.Data = []byte{}
	}
	var metadata string
	for name, field := range map[string]*string{
		HeaderDocID: &s.DocID, HeaderSubspace: &s.Subspace, HeaderOSSKey: &s.OSSKey, HeaderTitle: &s.Title, HeaderMetadata: &metadata,
	} {
		value, err := url.PathUnescape(get(name))
		if err != nil {
			return nil, Invalid(name, "is not percent-encoded: "+err.Error())
		}
		*field = value
	}
	if metadata != "" {
		s.Metadata = json.RawMessage(metadata)
	}
	return s, nil
}

// Validate checks bounds and form.
func (s *Submit) Validate() error {
	if err := validateDocID(s.DocID); err != nil {
		return err
	}
	if s.Subspace != "" {
		if err := ValidateName("subspace", s.Subspace); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, value string
		max         int
	}{{"title", s.Title, MaxTitleBytes}, {"ossKey", s.OSSKey, MaxOSSKeyBytes}, {"contentType", s.ContentType, MaxContentTypeBytes}} {
		if err := validateText(f.name, f.value, f.max); err != nil {
			return err
		}
	}
	if len(s.Metadata) > MaxMetadataBytes {
		return Invalid("metadata", "has more than "+strconv.Itoa(MaxMetadataBytes)+" bytes")
	}
	return s.validateContent()
}

func (s *Submit) validateContent() error {
	given := 0
	for _, has := range []bool{s.Text != nil, s.Data != nil, s.Upload != nil} {
		if has {
			given++
		}
	}
	if given != 1 {
		return Invalid("text", "exactly one of text, data and upload must be given")
	}
	if s.Text != nil {
		if err := ValidText("text", *s.Text); err != nil {
			return err
		}
	}
	if s.Upload != nil && (s.Upload.Object == "" || len(s.Upload.Object) > 256) {
		return Invalid("upload.object", "must have 1 to 256 bytes")
	}
	return nil
}

// DecodeDelete reads a delete from a JSON body or, with an empty body, from headers.
func DecodeDelete(get func(string) string, body []byte) (*Delete, error) {
	d := new(Delete)
	if len(body) > 0 {
		if err := decodeIngest(body, d); err != nil {
			return nil, err
		}
		return d, d.Validate()
	}
	for name, field := range map[string]*string{HeaderDocID: &d.DocID, HeaderSubspace: &d.Subspace} {
		value, err := url.PathUnescape(get(name))
		if err != nil {
			return nil, Invalid(name, "is not percent-encoded: "+err.Error())
		}
		*field = value
	}
	return d, d.Validate()
}

// Validate checks bounds and form.
func (d *Delete) Validate() error {
	if err := validateDocID(d.DocID); err != nil {
		return err
	}
	if d.Subspace == "" {
		return nil
	}
	return ValidateName("subspace", d.Subspace)
}

func validateDocID(id string) error {
	if id == "" {
		return Invalid("docId", "is missing")
	}
	return validateText("docId", id, MaxDocIDBytes)
}

func validateText(field, s string, maxBytes int) error {
	if len(s) > maxBytes {
		return Invalid(field, "has more than "+strconv.Itoa(maxBytes)+" bytes")
	}
	return ValidText(field, s)
}

// ValidText refuses what no text of ours may hold: invalid UTF-8 and U+0000.
func ValidText(field, s string) error {
	if !utf8.ValidString(s) {
		return Invalid(field, "is not valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return Invalid(field, "holds U+0000")
	}
	return nil
}
