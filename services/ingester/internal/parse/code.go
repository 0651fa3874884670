package parse

import (
	"bytes"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
)

func codeFormat() format {
	return format{
		name: "code",
		mediaTypes: []string{
			"text/x-script", "text/javascript", "application/javascript", "application/x-javascript", "application/typescript",
			"text/x-python", "text/x-go", "text/x-c", "text/x-java-source", "text/x-java", "text/x-csharp", "text/x-ruby", "text/x-rust",
			"text/css", "text/x-sh", "application/x-sh", "application/sql", "text/x-sql", "application/toml", "text/x-php", "application/x-httpd-php",
		},
		extensions: slices.Sorted(maps.Keys(languages)),
		firm:       true,
		maxBytes:   func(l Limits) int { return l.TextFile },
		sniff: func(data []byte) bool {
			return bytes.HasPrefix(data, []byte("#!/")) || bytes.HasPrefix(data, []byte("#! /"))
		},
		parse: parseCode,
	}
}

// languages gives the language of an extension, or of a whole file name.
var languages = map[string]string{
	".ada": "ada", ".asm": "asm", ".s": "asm", ".awk": "awk", ".bat": "batch", ".cmd": "batch", ".c": "c", ".h": "c", ".cc": "cpp",
	".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".cs": "csharp", ".clj": "clojure", ".cljs": "clojure", ".cmake": "cmake",
	".cob": "cobol", ".cbl": "cobol", ".coffee": "coffeescript", ".css": "css", ".scss": "scss", ".less": "less", ".cu": "cuda",
	".d": "d", ".dart": "dart", ".diff": "diff", ".patch": "diff", ".ex": "elixir", ".exs": "elixir", ".elm": "elm", ".erl": "erlang",
	".f": "fortran", ".f90": "fortran", ".f95": "fortran", ".fs": "fsharp", ".go": "go", ".mod": "go", ".gradle": "groovy", ".groovy": "groovy",
	".graphql": "graphql", ".gql": "graphql", ".hs": "haskell", ".hcl": "hcl", ".tf": "hcl", ".ini": "ini", ".cfg": "ini", ".conf": "ini",
	".env": "ini", ".properties": "properties", ".java": "java", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".jsx": "javascript", ".jl": "julia", ".kt": "kotlin", ".kts": "kotlin", ".lisp": "lisp", ".el": "lisp", ".scm": "scheme", ".lua": "lua",
	".m": "objective-c", ".mm": "objective-c", ".ml": "ocaml", ".mli": "ocaml", ".nim": "nim", ".nix": "nix", ".pas": "pascal",
	".pl": "perl", ".pm": "perl", ".php": "php", ".ps1": "powershell", ".psm1": "powershell", ".proto": "protobuf", ".py": "python",
	".pyi": "python", ".pyw": "python", ".r": "r", ".rb": "ruby", ".rs": "rust", ".sas": "sas", ".scala": "scala", ".sh": "shell",
	".bash": "shell", ".zsh": "shell", ".fish": "shell", ".sol": "solidity", ".sql": "sql", ".svelte": "svelte", ".swift": "swift",
	".tcl": "tcl", ".toml": "toml", ".ts": "typescript", ".tsx": "typescript", ".v": "verilog", ".sv": "verilog", ".vb": "vb", ".vhd": "vhdl",
	".vhdl": "vhdl", ".vue": "vue", ".wat": "wasm", ".zig": "zig",
	"dockerfile": "dockerfile", "containerfile": "dockerfile", "makefile": "makefile", "gnumakefile": "makefile", "jenkinsfile": "groovy",
	"cmakelists.txt": "cmake", "gemfile": "ruby", "rakefile": "ruby", "vagrantfile": "ruby",
}

// codeLanguageOf decides by the name, else by the interpreter that the first line names.
func codeLanguageOf(name, text string) string {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if lang := languages[base]; lang != "" {
		return lang
	}
	if lang := languages[path.Ext(base)]; lang != "" {
		return lang
	}
	first, _, _ := strings.Cut(text, "\n")
	if program, ok := strings.CutPrefix(first, "#!"); ok {
		for _, word := range strings.Fields(program) {
			if word = path.Base(word); word != "env" && !strings.HasPrefix(word, "-") {
				return interpreter(word)
			}
		}
	}
	return ""
}

func interpreter(program string) string {
	program = strings.TrimRight(program, "0123456789.")
	switch program {
	case "sh", "bash", "dash", "zsh", "ksh", "fish":
		return "shell"
	case "node", "deno", "bun":
		return "javascript"
	}
	return clip(program, 20)
}

// parseCode keeps source code as it is, in blocks that begin where a line without indentation follows an
// empty one: about a declaration each.
func parseCode(_ context.Context, s source, b *builder) error {
	text := normalise(s.text)
	return addCode(b, splitLines(text), codeLanguageOf(s.name, text), func(lines []line, i int) bool {
		return lines[i-1].blank() && lines[i].indent() == 0 && !closing(lines[i])
	})
}

// closing reports a line that ends what stands above it.
func closing(l line) bool { return strings.IndexByte(")]}", l[0]) >= 0 }

// addCode appends lines as blocks of code; begins reports that line i > 0 begins a new one.
func addCode(b *builder, lines []line, lang string, begins func(lines []line, i int) bool) error {
	start := 0
	for start < len(lines) && lines[start].blank() {
		start++
	}
	for i := start + 1; i <= len(lines); i++ {
		if i < len(lines) && (lines[i].blank() || !begins(lines, i)) {
			continue
		}
		if err := b.addLines(part{kind: KindCode, lang: lang}, lines, start, i, 0); err != nil {
			return err
		}
		start = i
	}
	return nil
}
