package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

func notebookFormat() format {
	return format{
		name:       "ipynb",
		mediaTypes: []string{"application/x-ipynb+json"},
		extensions: []string{".ipynb"},
		maxBytes:   func(l Limits) int { return l.TextFile },
		sniff:      sniffNotebook,
		parse:      parseNotebook,
	}
}

// sniffNotebook looks for the keys that a notebook has at its top.
func sniffNotebook(data []byte) bool {
	data = bytes.TrimSpace(data)
	return bytes.HasPrefix(data, []byte("{")) && bytes.Contains(data, []byte(`"nbformat"`)) &&
		bytes.Contains(data, []byte(`"cells"`)) && json.Valid(data)
}

// notebookText is a string or a list of strings.
type notebookText string

func (t *notebookText) UnmarshalJSON(data []byte) error {
	var parts []string
	if len(data) > 0 && data[0] == '[' {
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		*t = notebookText(strings.Join(parts, ""))
		return nil
	}
	var one string
	err := json.Unmarshal(data, &one)
	*t = notebookText(one)
	return err
}

type notebookCell struct {
	Kind    string       `json:"cell_type"`
	Source  notebookText `json:"source"`
	Outputs []struct {
		Text notebookText               `json:"text"`
		Data map[string]json.RawMessage `json:"data"`
	} `json:"outputs"`
}

// parseNotebook reads the cells in order: Markdown as such, code as code in the kernel's language, and
// what the code printed. Lines are those of the cell in the file.
func parseNotebook(ctx context.Context, s source, b *builder) error {
	n := &notebook{ctx: ctx, b: b, source: s, lang: "python", lines: lineCounter{text: s.text, line: 1}}
	var top struct {
		Metadata struct {
			Title    string `json:"title"`
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(s.text), &top); err == nil {
		b.title = top.Metadata.Title
		for _, lang := range []string{top.Metadata.Kernel.Language, top.Metadata.Language.Name} {
			if lang != "" {
				n.lang = clip(lang, 30)
			}
		}
	}
	if err := n.read(); err != nil {
		return jsonError(err, s.limits)
	}
	return nil
}

type notebook struct {
	ctx    context.Context
	b      *builder
	source source
	lang   string
	lines  lineCounter
}

// read walks the top object; only the list of cells is taken.
func (n *notebook) read() error {
	d := json.NewDecoder(strings.NewReader(n.source.text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key != "cells" {
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if open, err := d.Token(); err != nil || open != json.Delim('[') {
			return errors.Join(err, damaged("the notebook's cells are no list"))
		}
		for d.More() {
			if err := n.cell(d); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (n *notebook) cell(d *json.Decoder) error {
	if err := n.ctx.Err(); err != nil {
		return err
	}
	from := n.lines.lineOfValue(d.InputOffset())
	var c notebookCell
	if err := d.Decode(&c); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return err
		}
		return damaged("the notebook has a cell of another shape at line %d", from)
	}
	to := n.lines.lineOf(d.InputOffset())
	began := len(n.b.blocks)
	err := n.emit(c)
	for i := began; i < len(n.b.blocks); i++ {
		n.b.blocks[i].Line, n.b.blocks[i].LineEnd = from, to
	}
	return err
}

func (n *notebook) emit(c notebookCell) error {
	switch c.Kind {
	case "markdown":
		s := n.source
		s.text = string(c.Source)
		return parseMarkdown(n.ctx, s, n.b)
	case "code":
		if err := n.b.add(part{kind: KindCode, lang: n.lang, text: string(c.Source)}); err != nil {
			return err
		}
		for _, o := range c.Outputs {
			if err := n.output(string(o.Text), o.Data); err != nil {
				return err
			}
		}
		return nil
	}
	return n.b.add(part{kind: KindParagraph, text: string(c.Source)})
}

// output emits what code printed or gave as plain text, up to a bound: logs of training runs are long.
func (n *notebook) output(text string, data map[string]json.RawMessage) error {
	const most = 8 << 10
	if raw, ok := data["text/plain"]; ok && text == "" {
		var plain notebookText
		if err := json.Unmarshal(raw, &plain); err == nil {
			text = string(plain)
		}
	}
	return n.b.add(part{kind: KindCode, text: clipLines(text, most)})
}

// clipLines shortens text at a line end.
func clipLines(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if at := strings.LastIndexByte(text[:most], '\n'); at > 0 {
		return text[:at] + "\n…"
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
