package messages

import (
	"fmt"
	"slices"
	"strings"
)

// RerankProvider is a server of rerank models as far as requests may name it.
type RerankProvider struct {
	Name   string
	Models []string // the first is the default; none: the server has one model, which requests do not name
}

// RerankProviders are those that a server is set up with, the default first.
type RerankProviders []RerankProvider

const modelRoot = configRoot + ".rerankingConfiguration.modelConfiguration"

// Choose returns provider and model of a configuration, which may be nil. Errors are VALIDATION_ERROR of a name
// that the server is not set up with.
func (p RerankProviders) Choose(c *ModelConfig) (provider, model string, err error) {
	if c == nil {
		c = &ModelConfig{}
	}
	at := 0
	if c.Provider != "" {
		at = slices.IndexFunc(p, func(known RerankProvider) bool { return known.Name == c.Provider })
	}
	switch {
	case len(p) == 0:
		return "", "", Invalid(modelRoot+".provider", "no rerank model is configured on this server")
	case at < 0:
		return "", "", Invalid(modelRoot+".provider", fmt.Sprintf("%q is not configured on this server: it has %s", c.Provider, p.names()))
	}
	known := p[at]
	switch {
	case c.Model == "" && len(known.Models) == 0:
		return known.Name, "", nil
	case c.Model == "":
		return known.Name, known.Models[0], nil
	case !slices.Contains(known.Models, c.Model):
		return "", "", Invalid(modelRoot+".model", fmt.Sprintf("%q is no model of the provider %s", c.Model, known.Name))
	}
	return known.Name, c.Model, nil
}

func (p RerankProviders) names() string {
	var names []string
	for _, known := range p {
		names = append(names, known.Name)
	}
	return strings.Join(names, ", ")
}

// CheckModel checks what a configuration of its own says of rerank models, be they in effect or not: a provider
// that it names must be known; where it chooses MODEL there must be one, and where it names provider and model
// the provider must have it. nil is fine. Errors as Choose.
func (c *RetrievalConfiguration) CheckModel(known RerankProviders) error {
	if c == nil || c.Reranking == nil {
		return nil
	}
	chosen, named := c.Reranking.Type == RerankModel, deref(c.Reranking.Model)
	if named.Provider == "" && !chosen {
		return nil
	}
	if named.Provider == "" { // the model may be of a provider that another level names
		named.Model = ""
	}
	_, _, err := known.Choose(&named)
	return err
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// maxModelName bounds names in a model configuration, in bytes.
const maxModelName = 256

func (m *ModelConfig) validate() error {
	if m == nil {
		return nil
	}
	for _, f := range []struct{ name, value string }{{"provider", m.Provider}, {"model", m.Model}} {
		if len(f.value) > maxModelName {
			return Invalid(modelRoot+"."+f.name, fmt.Sprintf("has more than %d bytes", maxModelName))
		}
		if err := ValidText(modelRoot+"."+f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}
