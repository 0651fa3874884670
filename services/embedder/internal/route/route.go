// Package route finds the provider that serves a model.
package route

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/pkg/embedding"
	"github.com/weir-project/weir/pkg/messages"
)

// Table maps model names to providers. It does not change after it was filled, and is then safe for
// concurrent use.
type Table struct {
	byModel map[string]*embedding.Provider
	other   *embedding.Provider // for every model not listed, nil when there is none
	all     []*embedding.Provider
}

// New returns a table whose providers are closed by Close.
func New() *Table { return &Table{byModel: map[string]*embedding.Provider{}} }

// Add routes the models to p; without models p serves every model nobody else does.
func (t *Table) Add(p *embedding.Provider, models ...string) error {
	t.all = append(t.all, p)
	if len(models) == 0 {
		if t.other != nil {
			return errors.New("two providers serve every model")
		}
		t.other = p
	}
	for _, m := range models {
		if t.byModel[m] != nil {
			return fmt.Errorf("two providers serve model %s", m)
		}
		t.byModel[m] = p
	}
	return nil
}

// Provider returns the provider of a model. A model nobody serves is EMBED_MODEL_NOT_FOUND.
func (t *Table) Provider(model string) (*embedding.Provider, error) {
	if p := t.byModel[model]; p != nil {
		return p, nil
	}
	if t.other != nil {
		return t.other, nil
	}
	return nil, messages.Errorf(messages.CodeEmbedModelNotFound, "no embedding provider is configured for model %s", model)
}

// Close closes every provider.
func (t *Table) Close() {
	for _, p := range t.all {
		p.Close()
	}
}

// SpaceOf reads a space from the wire; what is wrong with it is a VALIDATION_ERROR of field "space".
func SpaceOf(s messages.Space) (embedding.Space, error) {
	space := embedding.Space(s)
	if err := space.Validate(); err != nil {
		return embedding.Space{}, messages.Invalid("space", err.Error())
	}
	return space, nil
}
