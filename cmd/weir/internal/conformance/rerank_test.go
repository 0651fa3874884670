package conformance_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// reranker serves scores over the common rerank API, by words in the query.
type reranker struct {
	mu    sync.Mutex
	rules map[string]rerankStep
}

// rerankStep says how requests with a word in their query are answered.
type rerankStep struct {
	Word   string             `json:"word"`
	Scores map[string]float64 `json:"scores"` // by document text; those not named are left out of the answer
	Status int                `json:"status"`
	Delay  string             `json:"delay"`
}

func newReranker() *reranker {
	return &reranker{rules: map[string]rerankStep{}}
}

func (r *reranker) set(s rerankStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules[s.Word] = s
}

func (r *reranker) rule(query string) rerankStep {
	r.mu.Lock()
	defer r.mu.Unlock()
	for word, s := range r.rules {
		if strings.Contains(query, word) {
			return s
		}
	}
	return rerankStep{}
}

type ranked struct {
	Index int     `json:"index"`
	Score float64 `json:"relevance_score"`
}

func (r *reranker) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s := r.rule(in.Query)
	if d, err := time.ParseDuration(s.Delay); err == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-req.Context().Done():
		}
	}
	if s.Status != 0 {
		http.Error(w, `{"message":"as the case wants it"}`, s.Status)
		return
	}
	out := []ranked{}
	for i, text := range in.Documents {
		score, named := s.Scores[text]
		switch {
		case named:
			out = append(out, ranked{i, score})
		case s.Scores == nil: // nobody said: the last is the best
			out = append(out, ranked{i, float64(i+1) / float64(len(in.Documents)+1)})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"results": out}) // the client left
}
