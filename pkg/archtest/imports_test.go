package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestImportsFollowTheTable(t *testing.T) {
	for _, f := range allFiles(t) {
		for _, imported := range f.imports {
			if why := forbidden(f, imported); why != "" {
				t.Errorf("%s -> %s: %s", f.name, strings.TrimPrefix(imported, module), why)
			}
		}
	}
}

// forbidden says why a file may not import a package, "" when it may.
func forbidden(f file, imported string) string {
	room := roomOf(f.pkg)
	if room == "" {
		return fmt.Sprintf("%s is in no room of the table", f.pkg)
	}
	if ours, ok := strings.CutPrefix(imported, module); ok {
		return forbiddenArrow(f, room, ours)
	}
	if f.test {
		return ""
	}
	if slices.Contains(onlyStandard, room) && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return room + " imports the standard library only"
	}
	for _, r := range reserved {
		if within(imported, []string{r.path}) && !within(f.pkg, r.by) && !(r.path == "testing" && imported != "testing") {
			return r.why
		}
	}
	return ""
}

// forbiddenArrow judges an arrow between two of our packages.
func forbiddenArrow(f file, room, to string) string {
	target := roomOf(to)
	allowed := mayImport[room]
	if f.test {
		allowed = slices.Concat(allowed, testsMayImport[""], testsMayImport[room])
	}
	switch {
	case target == room:
		return ""
	case !slices.Contains(allowed, target):
		return fmt.Sprintf("%s may import %v", room, allowed)
	case strings.HasPrefix(target, "services/") && !slices.Contains(doors, to):
		return fmt.Sprintf("of services only %v may be imported", doors)
	}
	return ""
}

// The judge itself: arrows that must be refused are.
func TestWrongArrowsAreSeen(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		test          bool
	}{
		{"services/ingester/internal/stage", module + "services/embedder", false},
		{"services/ingester", module + "services/embedder", true},
		{"services/ingester", module + "pkg/testkit", false},
		{"services/ingester", module + "migrations", false},
		{"services/ingester", "github.com/jackc/pgx/v5/pgxpool", false},
		{"services/ingester", "github.com/nats-io/nats-server/v2/server", false},
		{"services/ingester", "github.com/ThreeDotsLabs/watermill/message", false},
		{"cmd/weir/internal/up", module + "services/ingester/internal/parse", false},
		{"pkg/messages", "github.com/google/uuid", false},
		{"pkg/messages", module + "pkg/bus", false},
		{"pkg/messages", module + "pkg/bus", true},
		{"pkg/bus", module + "pkg/pgstore", false},
		{"pkg/lexical", module + "pkg/messages", false},
		{"pkg/pgstore", module + "pkg/bus", false},
		{"pkg/pgstore/filter", module + "pkg/pgstore", false},
		{"pkg/pgstore/filter", "github.com/jackc/pgx/v5", false},
		{"pkg/service", module + "pkg/bus", false},
		{"pkg/service/localpg", "github.com/nats-io/nats-server/v2/server", false},
		{"pkg/bus", "testing", false},
		{"pkg/bus", "C", false},
		{"tools/x", "fmt", false},
	} {
		if forbidden(file{pkg: c.pkg, test: c.test}, c.imported) == "" {
			t.Errorf("%s -> %s (test %v) passes", c.pkg, c.imported, c.test)
		}
	}
}

// TestServiceBinariesLinkNoTestCode asks the go command, which knows the way through other modules too.
func TestServiceBinariesLinkNoTestCode(t *testing.T) {
	mains := mainPackages(t)
	if len(mains) != 5 {
		t.Fatalf("main packages %v, want those of weir and the four services", mains)
	}
	work, err := filepath.Abs(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`}, mains...)...)
	cmd.Dir, cmd.Stderr, cmd.Env = root, os.Stderr, append(os.Environ(), "GOWORK="+work)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	checked := 0
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		name := strings.TrimPrefix(deps[0], module)
		if !strings.HasPrefix(name, "services/") {
			continue
		}
		checked++
		others := slices.DeleteFunc(slices.Clone(doors), func(d string) bool { return roomOf(d) == roomOf(name) })
		for _, dep := range deps[1:] {
			ours, _ := strings.CutPrefix(dep, module)
			if within(dep, notInServices) && !strings.HasPrefix(dep, "testing/") || within(ours, others) {
				t.Errorf("%s -> ... -> %s: must not be linked into a service", name, ours)
			}
		}
	}
	if checked != 4 {
		t.Errorf("checked %d service binaries", checked)
	}
}

// mainPackages are the programs that make build builds.
func mainPackages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, f := range allFiles(t) {
		program := strings.HasPrefix(f.pkg, "cmd/") || strings.HasPrefix(f.pkg, "services/")
		if program && !f.test && f.syntax.Name.Name == "main" && !slices.Contains(out, module+f.pkg) {
			out = append(out, module+f.pkg)
		}
	}
	return out
}

// statement matches the start of an SQL statement: in capitals, or whole enough to be no English.
var statement = regexp.MustCompile(`^\s*(SELECT\s|INSERT INTO\s|DELETE FROM\s|UPDATE\s+\w+\s+SET\s|MERGE INTO\s|TRUNCATE\s|COPY\s+\w+\s` +
	`|(CREATE|ALTER|DROP)\s+(UNIQUE\s+)?(TABLE|INDEX|DATABASE|EXTENSION|SCHEMA|FUNCTION|VIEW)\s|WITH\s+(RECURSIVE\s+)?\w+\s+AS\s` +
	`|(?is:select\s[^"]*\sfrom\s+\w|insert\s+into\s+\w+\s*\(|update\s+\w+\s+set\s+\w+\s*=|delete\s+from\s+\w+\s+where\s))`)

func TestSQLStandsInTheStore(t *testing.T) {
	found := 0
	for _, f := range allFiles(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !statement.MatchString(text) {
				return true
			}
			found++
			if !within(f.pkg, sqlAllowed) {
				t.Errorf("%s: SQL outside of pkg/pgstore: %.60q", f.position(lit), text)
			}
			return true
		})
	}
	if found == 0 {
		t.Error("found no SQL at all: the pattern is broken")
	}
}

func TestOnlyTheTopReadsTheEnvironment(t *testing.T) {
	found := 0
	for _, f := range allFiles(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, sel.Sel.Name) {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "os" {
				return true
			}
			found++
			if !within(f.pkg, environmentAllowed) {
				t.Errorf("%s: os.%s: only pkg/service and main packages read the environment", f.position(sel), sel.Sel.Name)
			}
			return true
		})
	}
	if found == 0 {
		t.Error("nothing reads the environment: the search is broken")
	}
}

// A panic on a goroutine that nobody guards ends the process, and with it every other document and request.
func TestServicesStartGoroutinesUnderGuard(t *testing.T) {
	found := map[string]bool{}
	for _, f := range allFiles(t) {
		if f.test || !strings.HasPrefix(f.pkg, "services/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if !starts(n) {
				return true
			}
			found[f.name] = true
			if !slices.Contains(startsAllowed, f.name) {
				t.Errorf("%s: start it in a guard.Group, or say in startsAllowed why not", f.position(n))
			}
			return true
		})
	}
	for _, name := range startsAllowed {
		if !found[name] {
			t.Errorf("%s starts nothing: take it off the list, or mend the search", name)
		}
	}
}

// starts reports a go statement, and a sync.WaitGroup, which has them inside.
func starts(n ast.Node) bool {
	if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "WaitGroup" {
		return true
	}
	_, ok := n.(*ast.GoStmt)
	return ok
}
