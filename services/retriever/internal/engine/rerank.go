package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/config"
	"github.com/weir-project/weir/services/retriever/internal/rerank"
)

// model checks what a rerank model needs and has the content of all candidates read.
func (r *request) model(reranker Reranker, candidateBytes int) error {
	if r.settings.Fusion.Method != fusion.Model {
		return nil
	}
	if strings.TrimSpace(r.Query.Text) == "" {
		return messages.Invalid("retrievalQuery.text", "is missing, and the rerank model needs it")
	}
	if strings.TrimSpace(r.question) == "" { // operators alone
		r.question = r.Query.Text
	}
	r.whole = true
	r.plan.Reading = pgstore.Reading{Bytes: candidateBytes, Prefix: reranker.MaxDocumentBytes(r.settings.Model.Provider) + 1} // one more shows that a text is cut
	return fits(reranker, r.settings.Model, r.mostCandidates())
}

// fits refuses more candidates than the provider takes.
func fits(reranker Reranker, m config.Model, candidates int) error {
	if most := reranker.MaxDocuments(m.Provider); candidates > most {
		return messages.Invalid("retrievalConfiguration.rerankingConfiguration.modelConfiguration.provider",
			fmt.Sprintf("%s takes %d documents, and numberOfResults of the searches allow for %d", m.Provider, most, candidates))
	}
	return nil
}

// mostCandidates is how many there can be.
func (r *request) mostCandidates() int {
	n := 0
	if r.settings.Fusion.Active().Dense {
		n += r.settings.DenseLimit
	}
	if r.plan.Text != nil {
		n += r.plan.Text.Limit
	}
	if r.plan.Fallback != nil { // in place of the dense leg
		n = max(n, r.plan.Fallback.Limit)
	}
	return n
}

// rerank brings what was found, all of it, into the order of the rerank model and answers with the first page.
func (e *Engine) rerank(ctx context.Context, r *request, found pgstore.SearchResult) (*Answer, error) {
	at := make(map[int64]int, len(found.Kept))
	for i := range found.Kept {
		at[found.Kept[i].ChunkID] = i
	}
	candidates, texts := make([]fusion.Candidate, len(r.pool)), make([]string, len(r.pool))
	for i := range r.pool {
		candidates[i], texts[i] = r.pool[i].Candidate, found.Kept[at[r.pool[i].id]].Content
	}
	if err := e.score(ctx, &r.settings, r.question, candidates, texts, &r.diag); err != nil {
		return nil, err
	}
	for i := range r.pool {
		r.pool[i].Candidate = candidates[i]
	}
	kept := r.order()
	if r.fuseErr != nil {
		return nil, r.fuseErr
	}
	page := make([]pgstore.Content, len(kept))
	for i, id := range kept {
		page[i] = found.Kept[at[id]]
	}
	found.Kept = page
	if _, beyond := whole(page); beyond {
		return e.readBehind(ctx, r, found)
	}
	return e.first(r, found), nil
}

// readBehind is first for a page that was not read whole with the candidates. What has gone since is left out.
func (e *Engine) readBehind(ctx context.Context, r *request, found pgstore.SearchResult) (*Answer, error) {
	r.remark(found)
	answer, err := e.read(ctx, r)
	if err != nil {
		return nil, err
	}
	d := &answer.Reply.Diagnostics
	sql := d.Timing.SQLMillis
	r.diagnose(d, found)
	d.Timing.SQLMillis += sql
	return answer, nil
}

// score has the rerank model say how relevant the candidates are whose texts these are. When no time is left for it,
// the settings become those of RRF and the diagnostics say so (D-26). A failure of the provider is
// RERANK_MODEL_ERROR.
func (e *Engine) score(ctx context.Context, s *config.Settings, question string, candidates []fusion.Candidate, texts []string, diag *messages.Diagnostics) error {
	if len(candidates) == 0 {
		return nil
	}
	ctx, span := e.Tracer.Start(ctx, "rerank")
	defer span.End()
	began := time.Now()
	answer, err := e.Reranker.Rerank(ctx, rerank.Query{Provider: s.Model.Provider, Model: s.Model.Name, Text: question, Documents: texts})
	if errors.Is(err, rerank.ErrNoTime) {
		e.Log.Warn("no time was left for the rerank model, the order is that of RRF", "provider", s.Model.Provider, "err", err)
		s.Fusion.Method, s.Fusion.DenseWeight, s.Fusion.TextWeight, s.Fusion.K = fusion.RRF, 1, 1, fusion.DefaultK
		diag.Dropped = append(diag.Dropped, messages.DroppedRerank)
		return nil
	}
	if err != nil {
		return e.modelFailed(s.Model, err)
	}
	report := &messages.RerankReport{Provider: s.Model.Provider, Model: s.Model.Name, Documents: len(texts), Cut: answer.Cut, Millis: millis(time.Since(began))}
	for i, a := range answer.Scores {
		candidates[i].Model = fusion.Relevance{Score: a.Value, Known: a.Known}
		if !a.Known {
			report.Omitted++
		}
	}
	diag.Rerank = report
	return nil
}

// modelFailed is what callers are told of a provider's failure; the log has the rest.
func (e *Engine) modelFailed(m config.Model, err error) error {
	var failed *rerank.Error
	if !errors.As(err, &failed) {
		return fmt.Errorf("rerank by %s: %w", m.Provider, err)
	}
	e.Log.Warn("the rerank model failed", "provider", m.Provider, "model", m.Name, "err", err)
	return fmt.Errorf("%w: %w", messages.Errorf(messages.CodeRerankModel, "%s", failed.Short()), err)
}
