package messages

import (
	"errors"
	"fmt"
	"strings"
)

// Code is a stable error code: part of the wire contract, never renamed.
type Code string

// Codes of replies, Failed events and dead letters.
const (
	CodeSuccess               = Code("SUCCESS")
	CodeValidation            = Code("VALIDATION_ERROR")
	CodeKBNotFound            = Code("KNOWLEDGE_BASE_NOT_FOUND")
	CodeDocumentNotFound      = Code("DOCUMENT_NOT_FOUND")
	CodeAlreadyExists         = Code("ALREADY_EXISTS")
	CodeNotFound              = Code("NOT_FOUND")
	CodeNotSupported          = Code("NOT_SUPPORTED")
	CodeRetrieverModeInvalid  = Code("RETRIEVER_MODE_INVALID")
	CodeModeNotSupported      = Code("RETRIEVER_MODE_NOT_SUPPORT")
	CodeScoreThreshold        = Code("SCORE_THRESHOLD_INVALID")
	CodeEmbedModelNotFound    = Code("EMBED_MODEL_NOT_FOUND")
	CodeIndexTypeNotSupported = Code("INDEX_TYPE_NOT_SUPPORT")
	CodeRerankModel           = Code("RERANK_MODEL_ERROR")
	CodeAllKBsFailed          = Code("ALL_KNOWLEDGE_BASES_FAILED")
	CodeTopKInvalid           = Code("TOP_K_INVALID")
	CodeVectorStoreNotFound   = Code("VECTOR_STORE_NOT_FOUND")
	CodeRetrieverNotFound     = Code("RETRIEVER_NOT_FOUND")
	CodeDeadlineExceeded      = Code("DEADLINE_EXCEEDED")
	CodeOverloaded            = Code("OVERLOADED")
	CodeUnavailable           = Code("UNAVAILABLE")
	CodeEmbeddingUnavailable  = Code("EMBEDDING_UNAVAILABLE")
	CodeInternal              = Code("INTERNAL")
	CodeCursorInvalid         = Code("CURSOR_INVALID")
	CodeCursorExpired         = Code("CURSOR_EXPIRED")
	CodeResponseTooLarge      = Code("RESPONSE_TOO_LARGE")
	CodeJobConflict           = Code("JOB_CONFLICT")
	CodeQuotaExceeded         = Code("QUOTA_EXCEEDED")
	CodeUnsupportedMediaType  = Code("UNSUPPORTED_MEDIA_TYPE")
	CodeEmptyDocument         = Code("EMPTY_DOCUMENT")
	CodeDocumentTooLarge      = Code("DOCUMENT_TOO_LARGE")
	CodeInvalidEncoding       = Code("INVALID_ENCODING")
	CodeDamagedDocument       = Code("DAMAGED_DOCUMENT")
	CodeParseLimit            = Code("PARSE_LIMIT")
	CodeNoText                = Code("NO_TEXT")
	CodePasswordRequired      = Code("PASSWORD_REQUIRED")
	CodeEmbeddingRejected     = Code("EMBEDDING_REJECTED")
	CodeDimensionMismatch     = Code("DIMENSION_MISMATCH")
	CodeDeliveriesExhausted   = Code("DELIVERIES_EXHAUSTED")
)

// Error is a permanent error of a request or a document: what callers see. It carries no document
// text and no stack.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"` // path of the offending field, empty when there is none
	Stage   string `json:"stage,omitempty"` // stage that failed, empty for requests
	Limit   int    `json:"limit,omitempty"` // most that is allowed, of a count above it; 0: not said
}

// Error says "CODE: field: message".
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Bounds of what Errorf and Invalid make: both may quote input of any size.
const (
	maxMessageBytes = 1000
	maxFieldBytes   = 256
)

// Errorf returns a permanent error without a field. A message over 1,000 bytes is cut.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: clip(fmt.Sprintf(format, args...), maxMessageBytes)}
}

// Invalid returns a VALIDATION_ERROR of a field. A field over 256 bytes and a reason over 1,000 are cut.
func Invalid(field, reason string) *Error {
	return &Error{Code: CodeValidation, Field: clip(field, maxFieldBytes), Message: clip(reason, maxMessageBytes)}
}

// clip cuts s to at most n bytes, at the border of a character, and says so with three dots.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("...")], "") + "..."
}

// AsError returns the permanent error inside err. Anything else is transient or internal.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}
