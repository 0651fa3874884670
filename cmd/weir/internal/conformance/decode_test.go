package conformance_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-project/weir/pkg/client"
)

// decodeStep reads a library result from JSON.
type decodeStep struct {
	As    string          `json:"as"` // RetrievalResult, SearchResult or MultiKBRetrievalResult
	JSON  json.RawMessage `json:"json"`
	Fails bool            `json:"fails"`
}

func (r *run) decode(t testing.TB, steps []decodeStep) {
	t.Helper()
	for _, s := range steps {
		var maps [2]map[string]any
		var err error
		for i := range maps {
			switch s.As {
			case "RetrievalResult":
				var v client.RetrievalResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			case "SearchResult":
				var v client.SearchResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			case "MultiKBRetrievalResult":
				var v client.MultiKBRetrievalResult
				err = json.Unmarshal(s.JSON, &v)
				maps[i] = v.Metadata
			default:
				t.Fatalf("%s: there is no %s", r.at, s.As)
			}
		}
		if (err != nil) != s.Fails {
			r.errorf(t, "%s %s: got %v, want it to fail: %v", s.As, s.JSON, err, s.Fails)
		}
		if s.Fails || err != nil {
			continue
		}
		if maps[0] == nil || len(maps[0]) > 0 {
			r.errorf(t, "%s: got the metadata %v, want an empty map", s.As, maps[0])
			continue
		}
		maps[0]["x"] = 1
		if len(maps[1]) > 0 {
			r.errorf(t, "%s: two results share their metadata", s.As)
		}
	}
}
