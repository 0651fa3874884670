package embedding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// ClientConfig says where a model is served.
type ClientConfig struct {
	// BaseURL is the address up to and including the version, for instance http://127.0.0.1:8080/v1.
	BaseURL string
	// APIKey goes into the Authorization header; empty sends none. It is never logged.
	APIKey string
	Model  string
	// Dims is the length every vector must have. 0 accepts any, as long as all of an answer agree.
	Dims int
	// SendDims asks the server for vectors of Dims dimensions; few models know the parameter.
	SendDims bool
	// Timeout of one request. Default 60 s.
	Timeout time.Duration
	// MaxResponseBytes bounds an answer. Default 64 MiB.
	MaxResponseBytes int64
	// HTTP is used when set; by default the client makes one with its own connections.
	HTTP *http.Client
}

const (
	defaultTimeout          = 60 * time.Second
	defaultMaxResponseBytes = 64 << 20
	defaultConnections      = 64
)

func (c ClientConfig) withDefaults() ClientConfig {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxResponseBytes == 0 {
		c.MaxResponseBytes = defaultMaxResponseBytes
	}
	if c.HTTP == nil {
		c.HTTP = NewHTTPClient(defaultConnections)
	}
	return c
}

// Validate reports everything wrong with the configuration.
func (c ClientConfig) Validate() error {
	var errs []error
	if err := validateBaseURL(c.BaseURL); err != nil {
		errs = append(errs, err)
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model: must not be empty"))
	}
	if c.Dims < 0 || c.Dims > MaxDims {
		errs = append(errs, fmt.Errorf("dims: must be 0 to %d", MaxDims))
	}
	if c.SendDims && c.Dims == 0 {
		errs = append(errs, errors.New("dims: must be given to be sent"))
	}
	return errors.Join(errs...)
}

func validateBaseURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("baseUrl: must be an http or https address such as http://127.0.0.1:8080/v1")
	}
	return nil
}

// Usage is what a request cost. Tokens is 0 when the server does not say, or says what cannot be.
type Usage struct {
	Requests int
	Tokens   int
}

// Client sends requests for one model to one server. Safe for concurrent use.
type Client struct {
	cfg    ClientConfig
	openai *openai.Client
	// floats is set once the server turned out not to send base64, which costs a fifth of the time.
	floats atomic.Bool
}

// NewClient checks the configuration; it does not connect.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embedding client: %w", err)
	}
	cfg = cfg.withDefaults()
	oc := openai.DefaultConfig(cfg.APIKey)
	oc.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	oc.HTTPClient = &doer{http: cfg.HTTP, max: cfg.MaxResponseBytes}
	return &Client{cfg: cfg, openai: openai.NewClientWithConfig(oc)}, nil
}

// Embed returns one vector a text, in order. The texts are sent as they are, in one request; see
// Space.PassageText for prefixes. On an error there are no vectors; errors.go lists its kinds.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, Usage, error) {
	a, err := c.embed(ctx, texts)
	return a.vectors, a.usage, err
}

// Probe embeds a short text and returns the number of dimensions. A length other than the
// configured one is ErrDimension.
func (c *Client) Probe(ctx context.Context) (int, error) {
	a, err := c.embed(ctx, []string{probeText})
	if err != nil {
		return 0, fmt.Errorf("probe model %s: %w", c.cfg.Model, err)
	}
	return len(a.vectors[0]), nil
}

// probeText is a text no provider has a reason to refuse.
const probeText = "query: hello"

// answer is a checked reply with what the governor wants to know.
type answer struct {
	vectors [][]float32
	usage   Usage
	limits  Limits
}

func (c *Client) embed(ctx context.Context, texts []string) (answer, error) {
	if len(texts) == 0 {
		return answer{limits: noLimits()}, nil
	}
	floats := c.floats.Load()
	a, err := c.request(ctx, texts, floats)
	if err == nil || floats || !base64Refused(err) {
		return a, err
	}
	b, err := c.request(ctx, texts, true)
	if err == nil {
		c.floats.Store(true)
	}
	b.usage.Requests++
	return b, err
}

// base64Refused reports an error that asking for plain floats may cure.
func base64Refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	if e.Kind == ErrBadAnswer {
		return strings.Contains(e.Message, "cannot unmarshal array")
	}
	message := strings.ToLower(e.Message)
	return (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) &&
		containsAny(message, "encoding_format", "base64")
}

func (c *Client) request(ctx context.Context, texts []string, floats bool) (answer, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errRequestTimeout)
	defer cancel()
	expected := len(texts)
	if floats {
		expected = 0
	}
	limited, x := withExchange(limited, expected)
	res, err := c.openai.CreateEmbeddings(limited, c.body(texts, floats))
	a := answer{usage: Usage{Requests: 1, Tokens: counted(res.Usage.TotalTokens, texts)}, limits: limitsOf(x.header)}
	if err != nil {
		return a, classify(ctx, timeoutCause(limited, err), x.header)
	}
	if x.vectors != nil {
		res.Data = x.vectors
	}
	a.vectors, err = c.check(res.Data, len(texts))
	return a, err
}

// counted is the number of tokens that the server says texts have, 0 where that cannot be: a token is seldom less than a
// byte, and the server's own instructions take some.
func counted(said int, texts []string) int {
	const perByte, perText = 4, 1 << 10
	most := perText * len(texts)
	for _, t := range texts {
		most += perByte * len(t)
	}
	if said < 0 || said > most {
		return 0
	}
	return said
}

// body is the request for the library. The texts are in the extra part, which it encodes once; what stands in Input it
// encodes, decodes and encodes again.
func (c *Client) body(texts []string, floats bool) openai.EmbeddingRequest {
	req := openai.EmbeddingRequest{
		Model: openai.EmbeddingModel(c.cfg.Model), EncodingFormat: openai.EmbeddingEncodingFormatBase64,
		ExtraBody: map[string]any{"input": texts},
	}
	if floats {
		req.EncodingFormat = openai.EmbeddingEncodingFormatFloat
	}
	if c.cfg.SendDims {
		req.Dimensions = c.cfg.Dims
	}
	return req
}

// timeoutCause names the client's own timeout where the error only says that a deadline passed.
func timeoutCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errRequestTimeout) {
		return cause
	}
	return err
}

// check puts the vectors in the order of the texts and refuses what cannot be stored.
func (c *Client) check(data []openai.Embedding, texts int) ([][]float32, error) {
	if len(data) != texts {
		return nil, badAnswer("%d vectors for %d texts", len(data), texts)
	}
	vectors := make([][]float32, texts)
	dims := c.cfg.Dims
	for _, d := range data {
		if d.Index < 0 || d.Index >= texts || vectors[d.Index] != nil {
			return nil, badAnswer("index %d is out of range or there twice", d.Index)
		}
		if dims == 0 {
			dims = len(d.Embedding)
		}
		if len(d.Embedding) != dims || dims == 0 {
			return nil, &Error{Kind: ErrDimension, Message: fmt.Sprintf(
				"model %s gives vectors of %d dimensions, %d expected", c.cfg.Model, len(d.Embedding), dims)}
		}
		if n := norm(d.Embedding); n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, badAnswer("the vector of text %d is zero or not finite", d.Index)
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

func badAnswer(format string, args ...any) error {
	return &Error{Kind: ErrBadAnswer, Message: fmt.Sprintf(format, args...)}
}
