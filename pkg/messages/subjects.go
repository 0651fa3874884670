package messages

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
)

// Subject prefixes. The tenant and knowledge base of every public subject are authoritative: a body
// that names others is refused.
const (
	SubjectSubmit   = "weir.docs.submit" // weir.docs.submit.<tenant>.<kb>
	SubjectDelete   = "weir.docs.delete" // weir.docs.delete.<tenant>.<kb>
	SubjectRPC      = "weir.rpc"         // weir.rpc.<tenant>.<kb>.<op>
	SubjectEvents   = "weir.events"      // weir.events.<tenant>.<kb>.<doc>.<Status>
	SubjectWork     = "weir.work"        // weir.work.<stage>.<lane>.<tenant>.<kb>
	SubjectDead     = "weir.dlq"         // weir.dlq.<stage>.<tenant>.<kb>
	SubjectInternal = "weir.internal"    // calls between services
	SubjectEmbed    = "weir.internal.embed"

	// TenantScope stands in place of a knowledge base for operations of the tenant.
	TenantScope = "_"
	// AllScope stands in place of a knowledge base for retrieval over several of them.
	AllScope = "_all"
	// NoDocument is the document token of an event that belongs to no document.
	NoDocument = "_"
)

// Lanes is the number of work lanes of a stage. A knowledge base always uses the same lane, so a
// heavy one delays at most the eighth of the others that share it.
const Lanes = 8

// MaxNameBytes and MaxDocIDBytes bound names on every door.
const (
	MaxNameBytes  = 64
	MaxDocIDBytes = 512
)

// isName reports whether s is of the form [a-z0-9_-]{1,64}.
func isName(s string) bool { return isToken(s) && !strings.ContainsFunc(s, unicode.IsUpper) }

// isToken reports whether s is of the form [A-Za-z0-9_-]{1,64}.
func isToken(s string) bool {
	if s == "" || len(s) > MaxNameBytes {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// ValidateName checks the name of a tenant, knowledge base or subspace: [a-z0-9_-]{1,64}, and not
// one of the reserved scopes. field names it in the error.
func ValidateName(field, name string) error {
	if !isName(name) {
		return Invalid(field, "must match [a-z0-9_-]{1,64}")
	}
	if name == TenantScope || name == AllScope {
		return Invalid(field, fmt.Sprintf("%q is reserved", name))
	}
	return nil
}

// Lane returns the lane, 0 to Lanes-1, of a knowledge base.
func Lane(tenant, kb string) int {
	h := fnv.New32a()
	h.Write([]byte(tenant + "." + kb))
	return int(h.Sum32() % Lanes)
}

// DocToken is the form of a document id inside a subject: the id itself where it is a plain token,
// else "~" and base32 of the first 20 bytes of its SHA-256. The true id is in the body.
func DocToken(docID string) string {
	if isToken(docID) && docID != NoDocument {
		return docID
	}
	sum := sha256.Sum256([]byte(docID))
	return "~" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])
}

// SubmitSubject is where documents of a knowledge base are published.
func SubmitSubject(tenant, kb string) string { return join(SubjectSubmit, tenant, kb) }

// DeleteSubject is where deletions of a knowledge base are published.
func DeleteSubject(tenant, kb string) string { return join(SubjectDelete, tenant, kb) }

// RPCSubject is the request-reply subject of an operation; scope is a knowledge base, TenantScope
// or AllScope.
func RPCSubject(tenant, scope, op string) string { return join(SubjectRPC, tenant, scope, op) }

// EventSubject is the subject of a status event. An empty docID stands for none: its token is
// NoDocument, which is that of no document id, not even of "_".
func EventSubject(tenant, kb, docID string, status DocumentStatus) string {
	token := NoDocument
	if docID != "" {
		token = DocToken(docID)
	}
	return join(SubjectEvents, tenant, kb, token, string(status))
}

// WorkSubject is the subject of a work message of a stage.
func WorkSubject(stage, tenant, kb string) string {
	return join(SubjectWork, stage, strconv.Itoa(Lane(tenant, kb)), tenant, kb)
}

// DeadSubject is the subject of a dead letter of a stage.
func DeadSubject(stage, tenant, kb string) string { return join(SubjectDead, stage, tenant, kb) }

// ParseScope returns tenant and knowledge base of a subject of any of the families above (laned
// forms too): they are its tokens at positions given by the family.
func ParseScope(subject string) (tenant, kb string, err error) {
	t := strings.Split(subject, ".")
	at := scopeIndex(t)
	if at == 0 || at+1 >= len(t) || t[at] == "" || t[at+1] == "" {
		return "", "", Invalid("subject", fmt.Sprintf("%q names no tenant and knowledge base", subject))
	}
	return t[at], t[at+1], nil
}

// scopeIndex is the position of the tenant token, 0 when there is none.
func scopeIndex(tokens []string) int {
	if len(tokens) < 4 || tokens[0] != "weir" {
		return 0
	}
	switch tokens[1] {
	case "rpc", "events":
		return 2
	case "dlq":
		return 3
	case "work":
		return 4
	case "docs": // weir.docs.<op>.<tenant>.<kb>, stored as weir.docs.<op>.<lane>.<tenant>.<kb>
		if n := len(tokens); n == 5 || n == 6 {
			return n - 2
		}
	}
	return 0
}

func join(tokens ...string) string { return strings.Join(tokens, ".") }
