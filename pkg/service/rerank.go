package service

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// RerankProvider is a server of rerank models: a setting that the retriever, which calls it, and the indexer,
// which checks the defaults of knowledge bases, must have alike.
type RerankProvider struct {
	Name string `json:"name"` // by which requests choose it; [a-z0-9_-]{1,64}
	URL  string `json:"url"`  // whole, such as http://127.0.0.1:8080/v1/rerank
	// API is the form of requests: rerank (or nothing) for {model, query, documents, top_n}, tei for the
	// {query, texts} of Text Embeddings Inference. Answers are read in either form.
	API string `json:"api,omitempty"`
	// Models that requests may name, the default first. None: the server has one, and no name is sent.
	Models []string `json:"models,omitempty"`
	APIKey Secret   `json:"apiKey,omitempty"` // sent as a bearer token
	// APIKeyFile holds the key, in place of APIKey. The retriever alone reads it.
	APIKeyFile string   `json:"apiKeyFile,omitempty"`
	Timeout    Duration `json:"timeout,omitempty"` // of one rerank; 0: 5 s
	// MaxDocuments is how many candidates a request may have reranked; 0: 1,000. More are refused.
	MaxDocuments int `json:"maxDocuments,omitempty"`
	// BatchDocuments is how many go into one call; 0: all. A server with a limit, such as the 32 of Text Embeddings
	// Inference, needs it.
	BatchDocuments   int `json:"batchDocuments,omitempty"`
	MaxDocumentBytes int `json:"maxDocumentBytes,omitempty"` // of a text sent, cut at a character; 0: 16 KiB
	InFlight         int `json:"inFlight,omitempty"`         // calls at once; 0: 8
}

// Forms of rerank requests.
const (
	RerankAPICommon = "rerank"
	RerankAPITEI    = "tei"
)

// Duration is a time.Duration that JSON holds as text, such as "500ms".
type Duration time.Duration

// MarshalText returns the text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the text.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Key returns the key of the provider, empty when it needs none.
func (p RerankProvider) Key() (Secret, error) {
	if p.APIKeyFile == "" {
		return p.APIKey, nil
	}
	text, err := os.ReadFile(p.APIKeyFile)
	if err != nil {
		return "", fmt.Errorf("read the key of rerank provider %s: %w", p.Name, err)
	}
	return Secret(strings.TrimSpace(string(text))), nil
}

// RerankProviders is a list of servers, the default first. It is a flag.Value: JSON, or @ and the name of a file
// with it.
type RerankProviders []RerankProvider

// RerankProvidersFlag is the name of the setting, and RerankProvidersHelp its description.
const (
	RerankProvidersFlag = "rerank-providers"
	RerankProvidersHelp = `servers of rerank models, as JSON or @file, the same for retriever and indexer: [{"name":"local","url":"http://host/v1/rerank","models":["bge-reranker-v2-m3"]}]`
)

// Names is what requests may name.
func (p RerankProviders) Names() messages.RerankProviders {
	var out messages.RerankProviders
	for _, known := range p {
		out = append(out, messages.RerankProvider{Name: known.Name, Models: known.Models})
	}
	return out
}

// String shows the list without its keys.
func (p *RerankProviders) String() string {
	if p == nil {
		return ""
	}
	return ShowJSON(*p)
}

// Set reads the list.
func (p *RerankProviders) Set(text string) error {
	list, err := ReadJSON[RerankProvider]("rerank providers", text)
	if err == nil {
		*p = list
	}
	return err
}

// Validate reports everything that is wrong by the name of the flag.
func (p RerankProviders) Validate() error {
	var problems []error
	seen := map[string]bool{}
	for i, known := range p {
		at := fmt.Sprintf("%s[%d]", RerankProvidersFlag, i)
		for _, problem := range known.problems() {
			problems = append(problems, fmt.Errorf("%s.%s", at, problem))
		}
		if seen[known.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %q is there twice", at, known.Name))
		}
		seen[known.Name] = true
	}
	return errors.Join(problems...)
}

func (p RerankProvider) problems() []string {
	var out []string
	if messages.ValidateName("name", p.Name) != nil {
		out = append(out, "name: must match [a-z0-9_-]{1,64}")
	}
	if u, err := url.Parse(p.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		out = append(out, "url: must be an http or https URL without a password") // it may hold one: not quoted
	}
	if p.API != "" && p.API != RerankAPICommon && p.API != RerankAPITEI {
		out = append(out, "api: must be rerank or tei")
	}
	if p.APIKey != "" && p.APIKeyFile != "" {
		out = append(out, "apiKeyFile: is given beside apiKey")
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"timeout", int64(p.Timeout)},
		{"maxDocuments", int64(p.MaxDocuments)},
		{"batchDocuments", int64(p.BatchDocuments)},
		{"maxDocumentBytes", int64(p.MaxDocumentBytes)},
		{"inFlight", int64(p.InFlight)},
	} {
		if n.value < 0 {
			out = append(out, n.field+": must not be negative")
		}
	}
	return out
}
