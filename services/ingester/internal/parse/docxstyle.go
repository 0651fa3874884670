package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"strings"
)

// wordStyle is what a paragraph style says about structure.
type wordStyle struct {
	name    string // lower case
	basedOn string
	outline int // heading level from 1; 0: not said; -1: body text
	list    bool
	num     string // numbering
	level   int    // of the numbering
}

// readStyles gives the paragraph styles by id; an archive without styles has none.
func readStyles(a *archive, l Limits) (map[string]wordStyle, error) {
	out := map[string]wordStyle{}
	in, err := a.open("word/styles.xml")
	if errors.Is(err, errNoEntry) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	id, current := "", wordStyle{}
	start := func(e xml.StartElement) error {
		switch value := local(e, "val"); e.Name.Local {
		case "style":
			id, current = local(e, "styleId"), wordStyle{}
		case "name":
			current.name = strings.ToLower(value)
		case "basedOn":
			current.basedOn = value
		case "outlineLvl":
			current.outline = outlineLevel(value)
		case "numPr":
			current.list = true
		case "numId":
			current.num = value
		case "ilvl":
			current.level = max(0, min(number(value, 0), 8))
		}
		return nil
	}
	end := func(name string) error {
		if name == "style" && id != "" && len(out) < 10_000 {
			out[id] = current
		}
		return nil
	}
	err = walkXML(context.Background(), in, l, start, end, func([]byte) {})
	return out, err
}

// outlineLevel turns Word's 0..8 into 1..9 and 9 (body text) into -1.
func outlineLevel(value string) int {
	if v := number(value, -1); v >= 0 && v <= 8 {
		return v + 1
	}
	return -1
}

// resolved is a style with what it inherits.
type resolved struct {
	heading int // from 1; 0: none
	title   bool
	list    bool
	num     string // numbering, "" without one
	level   int    // of the numbering
	code    bool
}

func resolveStyle(styles map[string]wordStyle, id string) resolved {
	var out resolved
	said := false
	for range 20 { // basedOn may loop
		s, ok := styles[id]
		if !ok {
			return out
		}
		level := s.outline
		if level == 0 {
			level = nameLevel(s.name)
		}
		if !said && level != 0 {
			said, out.heading = true, max(level, 0)
		}
		if out.num == "" {
			out.num, out.level = s.num, s.level
		}
		out.title = out.title || s.name == "title"
		out.list = out.list || s.list || strings.HasPrefix(s.name, "list")
		out.code = out.code || codeStyle(s.name)
		id = s.basedOn
	}
	return out
}

func nameLevel(name string) int {
	rest, ok := strings.CutPrefix(name, "heading ")
	if !ok || len(rest) != 1 || rest[0] < '1' || rest[0] > '9' {
		return 0
	}
	return int(rest[0] - '0')
}

func codeStyle(name string) bool {
	switch name {
	case "html preformatted", "preformatted text", "macro text", "code", "source code", "code block":
		return true
	}
	return false
}
