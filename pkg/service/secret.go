package service

import (
	"log/slog"
	"regexp"
)

// redacted is what a secret shows instead of itself.
const redacted = "redacted"

// Secret is a text that is never printed: every way of formatting, logging or encoding it gives
// "redacted", or "" when it is empty. Reveal gives the text itself. It is a flag.Value.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the text from JSON and other encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Set takes the text.
func (s *Secret) Set(text string) error {
	*s = Secret(text)
	return nil
}

// SecretURL is an address that may hold a password or token. It prints with them replaced; Reveal
// gives it whole. It may name several hosts, and be a Postgres keyword string. It is a flag.Value.
type SecretURL string

var (
	userinfo = regexp.MustCompile(`(://)(?:[^/?#@]*)@`)
	keyword  = regexp.MustCompile(`((?:password|sslpassword)\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)`)
)

// Reveal returns the whole address.
func (u SecretURL) Reveal() string { return string(u) }

// String hides user name, password and token.
func (u SecretURL) String() string {
	return keyword.ReplaceAllString(userinfo.ReplaceAllString(string(u), "${1}"+redacted+"@"), "${1}"+redacted)
}

// GoString hides them from %#v.
func (u SecretURL) GoString() string { return u.String() }

// MarshalText hides them from JSON and other encoders.
func (u SecretURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue hides them from slog.
func (u SecretURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// Set takes the address.
func (u *SecretURL) Set(text string) error {
	*u = SecretURL(text)
	return nil
}
