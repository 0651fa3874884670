package engine

import (
	"encoding/json"
	"slices"

	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/retriever/internal/cursor"
	"github.com/weir-project/weir/services/retriever/internal/highlight"
)

// pageReading bounds what is read of a page: more than twice what a reply holds will not fit it, and is cut.
func (e *Engine) pageReading(r *request) pgstore.Reading {
	return pgstore.Reading{Bytes: 2 * e.ReplyBytes(), NoContent: !r.settings.Output.Content && !(r.Highlight && r.marks.Analyzer != nil)}
}

// whole are the chunks before the first that was not read.
func whole(kept []pgstore.Content) (read []pgstore.Content, cut bool) {
	if i := slices.IndexFunc(kept, func(c pgstore.Content) bool { return c.Beyond }); i >= 0 {
		return kept[:i], true
	}
	return kept, false
}

// shape makes the answer of the chunks kept; places are those of their entries in the page.
func (e *Engine) shape(r *request, found pgstore.SearchResult, places []int) *Answer {
	reply := &messages.RetrieveReply{Diagnostics: r.diag}
	if found.Kept, reply.Truncated = whole(found.Kept); reply.Truncated { // the rest is for the next page
		reply.Diagnostics.Skipped = places[len(found.Kept)-1] + 1 - len(found.Kept)
	}
	r.diagnose(&reply.Diagnostics, found)
	reply.Results = make([]messages.RetrievedChunk, len(found.Kept))
	for i := range found.Kept {
		reply.Results[i] = r.result(&found.Kept[i], &r.page.Entries[places[i]])
	}
	a := &Answer{Reply: reply, bound: cursor.Bound(len(r.page.Entries), r.Explain)}
	a.seal = func(results int) string {
		rest := r.page
		rest.Entries = rest.Entries[places[results-1]+1:]
		return e.Cursors.Seal(r.owner, rest)
	}
	if n := len(found.Kept); n > 0 {
		reply.NextCursor = a.seal(n)
	}
	return a
}

// diagnose tells how the legs went.
func (r *request) diagnose(d *messages.Diagnostics, found pgstore.SearchResult) {
	d.Fusion = r.page.Fusion
	d.Timing.SQLMillis, d.Timing.ScoreMillis = millis(found.SQL), millis(found.Score)
	if r.Cursor != "" { // no leg was run
		return
	}
	if r.plan.Dense != nil {
		d.Dense = &messages.LegDiagnostics{Exact: true, Candidates: found.Dense.Candidates, Millis: millis(found.Dense.Took)}
	}
	if r.plan.Text != nil || found.FellBack {
		d.FullText = &messages.LegDiagnostics{
			Exact: true, Index: "segments", Candidates: found.Text.Candidates, Terms: found.Text.Terms, Millis: millis(found.Text.Took),
		}
	}
}

func (r *request) result(c *pgstore.Content, e *cursor.Entry) messages.RetrievedChunk {
	out := messages.RetrievedChunk{
		DocID: c.DocID, ChunkID: c.Ordinal, OSSKey: c.OSSKey, Score: e.Score, Subspace: c.Subspace,
		Metadata: Project(r.kb.Schema, r.settings.Output.Fields, c.Metadata), Title: c.Title, HeadingPath: c.HeadingPath,
		PageFrom: c.PageFrom, PageTo: c.PageTo, Origin: c.Origin, RawScore: &e.Raw, RawScoreScaled: &e.Scaled, Vector: c.Vector,
	}
	if r.settings.Output.Content {
		out.Content = c.Content
	}
	if r.Highlight && r.marks.Analyzer != nil {
		out.Highlights = highlight.Find(r.marks, c.Content)
	}
	if r.page.Fallback {
		out.RetrievalPath = messages.PathFallback
	}
	if r.Explain {
		out.Explain = &messages.Explain{
			Fusion: r.page.Fusion, Dense: detail(e.Dense, r.page.DenseWeight), FullText: detail(e.Text, r.page.TextWeight),
		}
		if r.page.Fusion == string(fusion.Model) {
			out.Explain.Model = &messages.ModelDetail{Raw: e.Raw, Scaled: e.Scaled, Omitted: e.Omitted}
		}
	}
	return out
}

func detail(s *cursor.Share, weight float64) *messages.LegDetail {
	if s == nil {
		return nil
	}
	return &messages.LegDetail{Rank: s.Rank, Raw: s.Raw, Scaled: s.Part, Weight: weight}
}

// Public is a document's metadata without the internal fields of its knowledge base.
func Public(schema messages.MetadataSchema, metadata []byte) json.RawMessage {
	return Project(schema, nil, metadata)
}

// Project is Public with only the fields named; nil names all.
func Project(schema messages.MetadataSchema, names []string, metadata []byte) json.RawMessage {
	if len(metadata) == 0 {
		return json.RawMessage("{}")
	}
	if names == nil && !slices.ContainsFunc(schema, func(f messages.MetadataField) bool { return f.Internal }) {
		return metadata
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(metadata, &fields) != nil {
		return json.RawMessage("{}") // never show what cannot be looked through
	}
	for name := range fields {
		f, declared := schema.Field(name)
		if declared && f.Internal || names != nil && !slices.Contains(names, name) {
			delete(fields, name)
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}
