package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// suite is everything that the files say.
type suite struct {
	cases    []testCase
	fixtures map[string]fixture
	index    index
	disputed []dispute
}

// testCase is one case of the contract.
type testCase struct {
	ID    string `json:"id"`
	About string `json:"about"`
	// Uses names a shared fixture, which the case leaves as it is; Own is a fixture of the case alone.
	Uses string   `json:"uses"`
	Own  *fixture `json:"own"`
	// Alone keeps other cases from running at the same time.
	Alone bool   `json:"alone"`
	Steps []step `json:"steps"`
}

// fixture is what is there before the first step.
type fixture struct {
	// Vectors are those of texts; what is not named gets one made of its words. They are filled up with zeros.
	Vectors        map[string][]float64 `json:"vectors"`
	KnowledgeBases []fixtureKB          `json:"knowledgeBases"`
}

type fixtureKB struct {
	Create    json.RawMessage   `json:"create"`
	Documents []json.RawMessage `json:"documents"`
}

// step does one thing; exactly one of the fields besides Note is given.
type step struct {
	Note       string         `json:"note"`
	Call       *call          `json:"call"`
	Submit     *submit        `json:"submit"`
	Embedding  *embeddingStep `json:"embedding"`
	Rerank     *rerankStep    `json:"rerank"`
	Pause      string         `json:"pause"`  // a stage
	Resume     string         `json:"resume"` // a stage
	Unseen     *unseen        `json:"unseen"`
	Fuse       *fuseStep      `json:"fuse"`
	FuseTexts  *fuseTextsStep `json:"fuseTexts"`
	Scale      []scaleStep    `json:"scale"`
	Expression []exprStep     `json:"expressions"`
	Builder    *builderStep   `json:"builder"`
	Retriever  *retrieverStep `json:"retriever"`
	Decode     []decodeStep   `json:"decode"`
}

// index is the list of all cases.
type index struct {
	Cases []string `json:"cases"`
	// Later are cases and parts of cases that are not due yet, with the reason.
	Later map[string]string `json:"later"`
}

// dispute is a case whose text we hold to be wrong.
type dispute struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func load(t testing.TB) suite {
	t.Helper()
	s := suite{fixtures: map[string]fixture{}}
	read(t, filepath.Join("testdata", "index.json"), &s.index)
	read(t, filepath.Join("testdata", "disputed.json"), &s.disputed)
	for _, path := range files(t, "fixtures") {
		var f fixture
		read(t, path, &f)
		name := filepath.Base(path)
		s.fixtures[name[:len(name)-len(".json")]] = f
	}
	for _, path := range files(t, "cases") {
		var cases []testCase
		read(t, path, &cases)
		s.cases = append(s.cases, cases...)
	}
	return s
}

func files(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata/%s: %d files, %v", folder, len(paths), err)
	}
	return paths
}

// read decodes a file strictly: a misspelt key would be a check that is never made.
func read(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: near byte %d: %v", path, d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: something follows the value", path)
	}
}

// check finds cases that could not mean anything.
func (c *testCase) check(fixtures map[string]fixture) error {
	if c.ID == "" || c.About == "" || len(c.Steps) == 0 {
		return errors.New("needs an id, a word about it and steps")
	}
	if c.Uses != "" && c.Own != nil {
		return errors.New("has both a shared fixture and one of its own")
	}
	if _, ok := fixtures[c.Uses]; c.Uses != "" && !ok {
		return fmt.Errorf("uses %s, which is no fixture", c.Uses)
	}
	for i := range c.Steps {
		if n := c.Steps[i].actions(); n != 1 {
			return fmt.Errorf("step %d does %d things, want one", i+1, n)
		}
	}
	return nil
}

// actions counts what a step does.
func (s *step) actions() int {
	n := 0
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		if v.Type().Field(i).Name != "Note" && !v.Field(i).IsZero() {
			n++
		}
	}
	return n
}

// TestIndex holds the files to the list: no case is lost, added or doubled unnoticed.
func TestIndex(t *testing.T) {
	s := load(t)
	var ids []string
	for _, c := range s.cases {
		ids = append(ids, c.ID)
		if err := c.check(s.fixtures); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	want := slices.Clone(s.index.Cases)
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		t.Errorf("the files hold\n%v\nthe index lists\n%v", ids, want)
	}
	if len(slices.Compact(want)) != len(ids) {
		t.Error("an id is given twice")
	}
	for id := range s.index.Later {
		if slices.Contains(ids, id) {
			t.Errorf("%s is both there and for later", id)
		}
	}
	for _, d := range s.disputed {
		if !slices.Contains(ids, d.ID) || d.Reason == "" {
			t.Errorf("disputed %q: want a listed case and a reason", d.ID)
		}
	}
}
