package rerank

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is a file of testdata/answers.
type recorded struct {
	Server, API, Model string
	Request, Answer    json.RawMessage
	Scores             []*float64
}

func answers(t *testing.T) map[string]recorded {
	t.Helper()
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d answers, %v", len(files), err)
	}
	out := map[string]recorded{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = r
	}
	return out
}

// fake is a rerank server of the test's making.
type fake struct {
	*httptest.Server
	models *Models
	reader *metric.ManualReader
}

func newFake(t *testing.T, settings service.RerankProvider, handle http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{Server: httptest.NewServer(handle), reader: metric.NewManualReader()}
	t.Cleanup(f.Server.Close)
	settings.Name = "local"
	if settings.URL == "" {
		settings.URL = f.URL + "/v1/rerank"
	}
	var err error
	if f.models, err = New(service.RerankProviders{settings}, metric.NewMeterProvider(metric.WithReader(f.reader))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.models.Close)
	return f
}

var tyres = Query{
	Provider: "local", Text: "which pressure for a 37 mm tyre",
	Documents: []string{
		"Inflate a 37 mm tyre to 4 bar.", "A chain lasts 3,000 km.", "Inflate a 37 mm tyre to 4 bar.", "Wide tyres need less pressure: 3 bar for 47 mm.",
	},
}

// TestContract runs over every server of testdata: what is sent is what it takes, what it answers is understood.
func TestContract(t *testing.T) {
	for name, r := range answers(t) {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, service.RerankProvider{API: r.API, APIKey: "k3y"}, func(w http.ResponseWriter, req *http.Request) {
				body, err := io.ReadAll(req.Body)
				if err != nil || req.Method != http.MethodPost || req.URL.Path != "/v1/rerank" {
					t.Errorf("%s %s: %v", req.Method, req.URL.Path, err)
				}
				if h := req.Header; h.Get("Authorization") != "Bearer k3y" || h.Get("Content-Type") != "application/json" {
					t.Errorf("headers %v", h)
				}
				if got, want := anyJSON(t, body), anyJSON(t, r.Request); !reflect.DeepEqual(got, want) {
					t.Errorf("sent\n%v\nwant\n%v", got, want)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(r.Answer)
			})
			q := tyres
			q.Model = r.Model
			got, err := f.models.Rerank(t.Context(), q)
			if err != nil || got.Cut != 0 || len(got.Scores) != len(r.Scores) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for i, want := range r.Scores {
				s := got.Scores[i]
				if s.Known != (want != nil) || want != nil && s.Value != *want {
					t.Errorf("text %d: got %+v, want %v", i, s, want)
				}
			}
		})
	}
}

func anyJSON(t *testing.T, data []byte) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	return out
}
