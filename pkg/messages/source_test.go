package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// sourceFiles parses the package without its tests.
func sourceFiles(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// jsonStructs returns the names of exported structs that have JSON keys.
func jsonStructs(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, f := range sourceFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && hasJSON(s) {
				names = append(names, spec.Name.Name)
			}
			return true
		})
	}
	return names
}

func hasJSON(s *ast.StructType) bool {
	for _, f := range s.Fields.List {
		if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") {
			return true
		}
	}
	return false
}

// stringConstants returns the values of the string constants whose names start with prefix, by name.
// A conversion such as Code("X") counts as its argument.
func stringConstants(t *testing.T, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range sourceFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
				return true
			}
			value := spec.Values[0]
			if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
				value = call.Args[0]
			}
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[spec.Names[0].Name] = s
			}
			return true
		})
	}
	return out
}

// constantsOf returns the values of the string constants of a named type, by name.
func constantsOf(t *testing.T, typeName string) map[string]string {
	t.Helper()
	all, out := stringConstants(t, ""), map[string]string{}
	for _, f := range sourceFiles(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 {
				return true
			}
			if value, ok := all[spec.Names[0].Name]; ok && declaredAs(spec, typeName) {
				out[spec.Names[0].Name] = value
			}
			return true
		})
	}
	return out
}

// declaredAs recognises X T = "…" and X = T("…").
func declaredAs(spec *ast.ValueSpec, typeName string) bool {
	if id, ok := spec.Type.(*ast.Ident); ok {
		return id.Name == typeName
	}
	call, ok := spec.Values[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == typeName
}
