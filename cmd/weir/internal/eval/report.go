package eval

import (
	"fmt"
	"io"
	"time"
)

// Report is the outcome of one set in one mode.
type Report struct {
	Set        string    `json:"set"`
	KB         string    `json:"kb"`
	Mode       Mode      `json:"mode"`
	Documents  int       `json:"documents"`
	NDCG10     float64   `json:"ndcg@10"`
	Recall100  float64   `json:"recall@100"`
	MRR10      float64   `json:"mrr@10"`
	Queries    int       `json:"queries"`
	Unanswered int       `json:"unanswered"`
	Refused    []string  `json:"refused,omitempty"` // queries that the service would not take
	P50Millis  float64   `json:"p50_ms"`
	P95Millis  float64   `json:"p95_ms"`
	Failed     []Failure `json:"failed,omitempty"` // documents, of this run's publishing
}

// NewReport scores the answers.
func NewReport(s *Set, kb string, mode Mode, a Answers) (Report, error) {
	scores, err := Score(s.Qrels, a.Run)
	if err != nil {
		return Report{}, fmt.Errorf("score %s: %w", s.Name, err)
	}
	return Report{
		Set: s.Name, KB: kb, Mode: mode, Documents: s.Docs, NDCG10: scores.NDCG10, Recall100: scores.Recall100, MRR10: scores.MRR10,
		Queries: scores.Queries, Unanswered: scores.Unanswered, Refused: a.Refused,
		P50Millis: millis(a.P50), P95Millis: millis(a.P95),
	}, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Table writes reports as a Markdown table, whose columns also line up as text.
func Table(w io.Writer, reports []Report) error {
	name := len("set")
	for _, r := range reports {
		name = max(name, len(r.Set))
	}
	row := fmt.Sprintf("| %%-%ds | %%-6s | %%9s | %%7s | %%7s | %%10s | %%7s | %%7s | %%7s |\n", name)
	if _, err := fmt.Fprintf(w, row, "set", "mode", "documents", "queries", "nDCG@10", "Recall@100", "MRR@10", "p50 ms", "p95 ms"); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, row, "---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:"); err != nil {
		return err
	}
	for _, r := range reports {
		_, err := fmt.Fprintf(w, row, r.Set, r.Mode, fmt.Sprint(r.Documents), fmt.Sprint(r.Queries), four(r.NDCG10), four(r.Recall100), four(r.MRR10),
			fmt.Sprintf("%.1f", r.P50Millis), fmt.Sprintf("%.1f", r.P95Millis))
		if err != nil {
			return err
		}
	}
	return nil
}

func four(x float64) string { return fmt.Sprintf("%.4f", x) }
