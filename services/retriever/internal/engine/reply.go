package engine

import (
	"encoding/json"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/fusion"
)

// reply shapes the results in their order.
func (r *request) reply(found pgstore.SearchResult) *messages.RetrieveReply {
	out := &messages.RetrieveReply{Results: make([]messages.RetrievedChunk, len(found.Kept)), Diagnostics: r.diag}
	d := &out.Diagnostics
	d.Fusion = r.fusionName()
	d.Timing.SQLMillis, d.Timing.ScoreMillis = millis(found.SQL), millis(found.Score)
	if r.plan.Dense != nil {
		d.Dense = &messages.LegDiagnostics{Exact: true, Candidates: found.Dense.Candidates, Millis: millis(found.Dense.Took)}
	}
	if r.plan.Text != nil {
		d.FullText = &messages.LegDiagnostics{
			Exact: true, Index: "segments", Candidates: found.Text.Candidates, Terms: found.Text.Terms, Millis: millis(found.Text.Took),
		}
	}
	for i := range found.Kept {
		out.Results[i] = r.result(&found.Kept[i], &r.fused[i])
	}
	return out
}

// fusionName is the method, or the leg that answered alone.
func (r *request) fusionName() string {
	switch {
	case r.plan.Text == nil:
		return string(messages.DenseVector)
	case r.plan.Dense == nil:
		return string(messages.FullText)
	}
	return string(r.settings.Fusion.Method)
}

func (r *request) result(c *pgstore.Content, f *fusion.Result) messages.RetrievedChunk {
	out := messages.RetrievedChunk{
		DocID: c.DocID, ChunkID: c.Ordinal, OSSKey: c.OSSKey, Score: f.Score, Content: c.Content, Subspace: c.Subspace,
		Metadata: Public(r.kb.Schema, c.Metadata), Title: c.Title, HeadingPath: c.HeadingPath, PageFrom: c.PageFrom, PageTo: c.PageTo,
		RawScore: &f.Raw, RawScoreScaled: &f.Scaled,
	}
	if r.Explain {
		out.Explain = &messages.Explain{Fusion: r.fusionName()}
		if r.plan.Dense != nil {
			out.Explain.Dense = detail(f.Dense)
		}
		if r.plan.Text != nil {
			out.Explain.FullText = detail(f.Text)
		}
	}
	return out
}

func detail(s fusion.Share) *messages.LegDetail {
	return &messages.LegDetail{Rank: s.Rank, Raw: s.Raw, Scaled: s.Part, Weight: s.Weight}
}

// Public is a document's metadata without the internal fields of its knowledge base.
func Public(schema messages.MetadataSchema, metadata []byte) json.RawMessage {
	if len(metadata) == 0 {
		return json.RawMessage("{}")
	}
	internal := false
	for _, f := range schema {
		internal = internal || f.Internal
	}
	if !internal {
		return metadata
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(metadata, &fields) != nil {
		return json.RawMessage("{}") // never show what cannot be looked through
	}
	for _, f := range schema {
		if f.Internal {
			delete(fields, f.Name)
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}
