package retriever

import (
	"context"
	"fmt"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever/internal/rerank"
)

// TryRerank has every model of a provider score two texts, as a request would. The error is of the first that does
// not; it holds neither address nor key.
func TryRerank(ctx context.Context, provider service.RerankProvider) error {
	models, err := rerank.New(service.RerankProviders{provider}, nil)
	if err != nil {
		return err
	}
	defer models.Close()
	names := provider.Models
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		_, err := models.Rerank(ctx, rerank.Query{
			Provider: provider.Name, Model: name, Text: "weir doctor", Documents: []string{"a doctor of weirs", "something else"},
		})
		if err != nil && name != "" {
			return fmt.Errorf("model %s: %w", name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
