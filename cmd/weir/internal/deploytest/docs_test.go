package deploytest_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weir-project/weir/cmd/weir/internal/up"
	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/embedder"
	"github.com/weir-project/weir/services/indexer"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/retriever"
)

const root = "../../../.."

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// files lists those below the given folders or files of the checkout with one of the endings.
func files(t *testing.T, below []string, endings ...string) []string {
	t.Helper()
	var out []string
	for _, b := range below {
		err := filepath.WalkDir(filepath.Join(root, b), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains(endings, filepath.Ext(path)) {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no files with %v below %v", endings, below)
	}
	return out
}

// settings are the defaults of all flags of the services and of weir up, by name.
func settings() map[string]string {
	process, in, em, ix, re := service.DefaultConfig(), ingester.DefaultConfig(), embedder.DefaultConfig(), indexer.DefaultConfig(), retriever.DefaultConfig()
	options := up.DefaultOptions()
	out := map[string]string{"config": "", "print-config": "", "detach": ""}
	for _, s := range []service.Settings{&process, &in, &em, &ix, &re, &options} {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		s.Flags(set)
		set.VisitAll(func(f *flag.Flag) { out[f.Name] = f.DefValue })
	}
	return out
}

// ofTool are flags of the commands of weir, where no table of settings holds them.
var ofTool = []string{"tenant", "timeout", "json", "help"}

func TestEverySettingIsDocumentedAndNoneInvented(t *testing.T) {
	t.Parallel()
	known := settings()
	named := map[string]bool{}
	text := read(t, filepath.Join(root, "docs/configuration.md"))
	for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
		if _, ok := known[m[1]]; !ok && !slices.Contains(ofTool, m[1]) {
			t.Errorf("docs/configuration.md names --%s, which does not exist", m[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !named[name] {
			t.Errorf("docs/configuration.md says nothing of --%s", name)
		}
	}
}

// A number or a time that a table gives as default is the program's. Where the table says what a 0 stands for, it begins with the 0.
func TestDocumentedDefaultsAreThoseOfThePrograms(t *testing.T) {
	t.Parallel()
	known, compared := settings(), 0
	row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| `?([0-9][0-9a-z]*)`?[ :|]")
	for _, m := range row.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/configuration.md")), -1) {
		name, want := m[1], m[2]
		got, ok := known[name]
		if !ok { // of the tool, as TestEverySettingIsDocumentedAndNoneInvented looks after
			continue
		}
		compared++
		if length, err := time.ParseDuration(want); got != want && (err != nil || got != length.String()) {
			t.Errorf("docs/configuration.md says that --%s is %s by default, it is %s", name, want, got)
		}
	}
	if compared < 40 {
		t.Errorf("compared only %d defaults", compared)
	}
}

// Every variable that a command reads is told, but for those of the system.
func TestEveryVariableOfTheToolIsDocumented(t *testing.T) {
	t.Parallel()
	text, found := read(t, filepath.Join(root, "docs/configuration.md")), 0
	for _, path := range files(t, []string{"cmd", "pkg/service"}, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`[gG]etenv\("([A-Z_]+)"\)`).FindAllStringSubmatch(read(t, path), -1) {
			found++
			setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(m[1], "WEIR_"), "_", "-"))
			_, ok := settings()[setting]
			if !ok && !slices.Contains(ofSystem, m[1]) && !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("docs/configuration.md says nothing of %s, which %s reads", m[1], path)
			}
		}
	}
	if found < 10 {
		t.Errorf("found only %d variables", found)
	}
}

// ofSystem are variables that mean the same to every program.
var ofSystem = []string{"HOME", "TERM", "TZ", "XDG_CONFIG_HOME"}

// otherVariables are those of the environment that are no settings of a service.
var otherVariables = []string{
	"WEIR_HOME", "WEIR_CONFIG", "WEIR_KB", "WEIR_NATS_INBOX_PREFIX", "WEIR_OWNER_PASSWORD", "WEIR_INGESTER_PASSWORD", "WEIR_RETRIEVER_PASSWORD",
}

func TestVariablesInDocsAndManifestsAreSettings(t *testing.T) {
	t.Parallel()
	known := settings()
	for _, path := range files(t, []string{"README.md", "docs", "deploy"}, ".md", ".yaml", ".sh", ".conf") {
		for _, name := range regexp.MustCompile(`\bWEIR_[A-Z_]*[A-Z]\b`).FindAllString(read(t, path), -1) {
			setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "WEIR_"), "_", "-"))
			stream := slices.Contains([]string{"WEIR_DOCS", "WEIR_PARSE", "WEIR_EMBED", "WEIR_INDEX", "WEIR_DLQ", "WEIR_EVENTS", "WEIR_ADVISORIES"}, name)
			if _, ok := known[setting]; !ok && !stream && !slices.Contains(otherVariables, name) {
				t.Errorf("%s: %s is neither a setting nor a stream", path, name)
			}
		}
	}
}

// metricsInCode are the instruments of the sources, as "weir_bus_acked".
func metricsInCode(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, path := range files(t, []string{"pkg", "services"}, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"(weir\.(?:bus|rpc|embedder|ingester|indexer|retriever)\.[a-z_.]+)", ?("|metric)`).FindAllStringSubmatch(read(t, path), -1) {
			out[strings.ReplaceAll(m[1], ".", "_")] = true
		}
	}
	return out
}

func TestMetricsInDocsAndRulesExist(t *testing.T) {
	t.Parallel()
	inCode := metricsInCode(t)
	if len(inCode) < 15 {
		t.Fatalf("found only %d metrics in the sources", len(inCode))
	}
	suffix := regexp.MustCompile(`(_seconds)?(_total|_bucket|_count|_sum)?$`)
	named := map[string]bool{}
	for _, path := range append(files(t, []string{"deploy/monitoring"}, ".yaml", ".json"), filepath.Join(root, "docs/operations.md")) {
		for _, name := range regexp.MustCompile(`\bweir_(?:bus|rpc|embedder|ingester|indexer|retriever)_[a-z_]+`).FindAllString(read(t, path), -1) {
			base := suffix.ReplaceAllString(name, "")
			named[base] = true
			if !inCode[base] {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inCode)) {
		if !named[name] {
			t.Errorf("docs/operations.md says nothing of %s", name)
		}
	}
}

func TestReadmeNamesEveryOperation(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join(root, "README.md"))
	for _, op := range messages.Operations() {
		if !strings.Contains(text, "`"+op.Name+"`") {
			t.Errorf("README.md does not name the operation %s", op.Name)
		}
	}
}

func TestLinksInDocsLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range files(t, []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs"}, ".md") {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s: %s has no heading %q", path, to, anchor)
			}
		}
	}
}

// anchors are the names that headings get on the usual forges.
func anchors(markdown string) []string {
	var out []string
	for _, line := range strings.Split(markdown, "\n") {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title)))
	}
	return out
}
