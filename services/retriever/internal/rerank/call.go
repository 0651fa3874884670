package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weir-project/weir/pkg/service"
)

// common is a request of the common API.
type common struct {
	Model     string   `json:"model,omitempty"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

// tei is a request of Text Embeddings Inference, which serves one model.
type tei struct {
	Query    string   `json:"query"`
	Texts    []string `json:"texts"`
	Truncate bool     `json:"truncate"` // what the model cannot take is cut, not refused
}

func (p *provider) body(q Query, texts []string) ([]byte, error) {
	var message any = common{Model: q.Model, Query: q.Text, Documents: texts, TopN: len(texts)}
	if p.API == service.RerankAPITEI {
		message = tei{Query: q.Text, Texts: texts, Truncate: true}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(message)
	return out.Bytes(), err
}

// call makes one HTTP request, counts it and puts down the scores of texts.
func (p *provider) call(ctx context.Context, q Query, texts []string, scores []Score) error {
	err := p.exchange(ctx, q, texts, scores)
	p.metrics.called(ctx, p.Name, err)
	return err
}

func (p *provider) exchange(ctx context.Context, q Query, texts []string, scores []Score) error {
	body, err := p.body(q, texts)
	if err != nil {
		return p.failed(Refused, 0, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return p.failed(Refused, 0, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key.Reveal())
	}
	res, err := p.http.Do(req)
	if err != nil {
		return p.broken(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return p.status(res)
	}
	limit := answerLimit(len(body), len(texts))
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return p.broken(ctx, err)
	case int64(len(data)) > limit:
		return p.failed(TooLong, res.StatusCode, fmt.Errorf("more than %d bytes", limit))
	}
	if err := read(data, scores); err != nil {
		return p.failed(Invalid, res.StatusCode, err)
	}
	return nil
}

// answerLimit is the longest answer that is read: some servers send the texts back, six bytes a byte at worst.
func answerLimit(sent, texts int) int64 { return int64(64<<10 + 512*texts + 6*sent) }

func (p *provider) failed(kind Kind, status int, err error) *Error {
	return &Error{Provider: p.Name, Kind: kind, Status: status, Err: err, after: -1}
}

// broken is the error of a connection; that of the context goes first.
func (p *provider) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) { // the address may be nobody's business
		err = withURL.Err
	}
	return p.failed(Unreachable, 0, err)
}

// drained is how much of a refusal is read so that the connection can be used again.
const drained = 64 << 10

func (p *provider) status(res *http.Response) error {
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, drained)) // it may quote texts: never kept
	kind := Refused
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		kind = Busy
	case res.StatusCode >= 500:
		kind = Failed
	}
	e := p.failed(kind, res.StatusCode, nil)
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		e.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	return e
}

// result is one score of an answer: relevance_score of the common API, score of Text Embeddings Inference.
type result struct {
	Index     *int     `json:"index"`
	Relevance *float64 `json:"relevance_score"`
	Score     *float64 `json:"score"`
}

// read puts down the scores of an answer, which is {"results": […]} or the bare list. Texts that it leaves out keep
// none.
func read(data []byte, scores []Score) error {
	results, err := parse(data)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("it has no scores")
	}
	found := make([]Score, len(scores))
	for i, r := range results {
		value := r.Relevance
		if value == nil {
			value = r.Score
		}
		switch {
		case r.Index == nil:
			return fmt.Errorf("result %d has no index", i)
		case *r.Index < 0 || *r.Index >= len(scores):
			return fmt.Errorf("result %d is of text %d, there are %d", i, *r.Index, len(scores))
		case found[*r.Index].Known:
			return fmt.Errorf("text %d has two scores", *r.Index)
		case value == nil:
			return fmt.Errorf("text %d has no score", *r.Index)
		case math.IsNaN(*value) || math.IsInf(*value, 0):
			return fmt.Errorf("the score of text %d is no number", *r.Index)
		}
		found[*r.Index] = Score{Value: *value, Known: true}
	}
	copy(scores, found)
	return nil
}

func parse(data []byte) ([]result, error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var list []result
		return list, unreadable(json.Unmarshal(data, &list))
	}
	var answer struct {
		Results []result `json:"results"`
	}
	return answer.Results, unreadable(json.Unmarshal(data, &answer))
}

// unreadable keeps the place of an error and leaves out what stands there.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s is of the wrong type", typed.Field)
	}
	return errors.New("it is not JSON")
}
