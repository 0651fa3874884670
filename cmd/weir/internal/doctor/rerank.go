package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/retriever"
)

// rerankProviders has every rerank model that is set up score two texts.
func rerankProviders(ctx context.Context, p *patient) []Finding {
	if p.Rerank == nil {
		return []Finding{{Level: Skip, Says: "no rerank models are known here: set WEIR_RERANK_PROVIDERS as for the retriever"}}
	}
	list, err := p.Rerank()
	if err == nil {
		err = list.Validate()
	}
	switch {
	case err != nil:
		return fail("the setting is wrong: "+err.Error(), "correct WEIR_RERANK_PROVIDERS; docs/configuration.md tells its form")
	case len(list) == 0:
		return []Finding{{Level: Skip, Says: "no rerank models are known here: set WEIR_RERANK_PROVIDERS as for the retriever"}}
	}
	var out []Finding
	for _, provider := range list {
		out = append(out, tryRerank(ctx, provider))
	}
	return out
}

func tryRerank(ctx context.Context, provider service.RerankProvider) Finding {
	began := time.Now()
	if err := retriever.TryRerank(ctx, provider); err != nil {
		return Finding{
			Level: Fail, Says: fmt.Sprintf("%s does not rerank: %v", provider.Name, err),
			Fix: "check url, api, models and key of the provider in WEIR_RERANK_PROVIDERS, and that its server runs; until then requests of MODEL fail",
		}
	}
	return Finding{Level: OK, Says: fmt.Sprintf("%s, %d models, %d ms", provider.Name, max(len(provider.Models), 1), time.Since(began).Milliseconds())}
}
