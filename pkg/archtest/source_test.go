package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// file is one Go source file.
type file struct {
	name    string // relative to the root
	pkg     string // its directory, relative to the root
	test    bool
	imports []string
	fset    *token.FileSet
	syntax  *ast.File
}

// sources parses every Go file of the workspace once. Reading the files here, instead of asking the go
// command alone, lets go test notice when a cached result is out of date.
var sources = sync.OnceValues(func() ([]file, error) {
	var out []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		f, err := parse(name)
		out = append(out, f)
		return err
	})
	return out, err
})

func parse(name string) (file, error) {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return file{}, err
	}
	rel = filepath.ToSlash(rel)
	text, err := os.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	f := file{name: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), fset: token.NewFileSet()}
	if f.syntax, err = parser.ParseFile(f.fset, rel, text, parser.SkipObjectResolution); err != nil {
		return file{}, err
	}
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, err
		}
		f.imports = append(f.imports, p)
	}
	return f, nil
}

func allFiles(t *testing.T) []file {
	t.Helper()
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("found only %d Go files", len(files))
	}
	return files
}

// within reports whether a path is one of the given ones or below one.
func within(p string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return p == parent || strings.HasPrefix(p, parent+"/") })
}

// roomOf returns the room a package belongs to, "" when it has none.
func roomOf(pkg string) string {
	for parts := strings.Split(pkg, "/"); len(parts) > 0; parts = parts[:len(parts)-1] {
		room := strings.Join(parts, "/")
		if _, ok := mayImport[room]; ok {
			return room
		}
	}
	return ""
}

// position of a node for messages.
func (f file) position(n ast.Node) string { return f.fset.Position(n.Pos()).String() }
