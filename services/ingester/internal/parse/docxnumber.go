package parse

import (
	"context"
	"encoding/xml"
	"strconv"
	"strings"
)

// wordNumbering counts numbered paragraphs as Word does.
type wordNumbering struct {
	abstract map[string]*[wordLevels]wordLevel // by abstract id
	uses     map[string]string                 // abstract id by numbering id
	starts   map[string]int                    // overridden starts, by "id level"
	counts   map[string]*[wordLevels]int       // by abstract id; 0: not begun
	begun    map[string]bool                   // numberings whose overrides were applied
}

const wordLevels = 9

type wordLevel struct {
	start  int
	format string // decimal, lowerLetter, bullet …
	text   string // with %1 for the number of level 1
}

// readNumbering reads the definitions; a file without any has none. Styles that a level names get the
// level.
func readNumbering(ctx context.Context, a *archive, styles map[string]wordStyle) (*wordNumbering, error) {
	n := &wordNumbering{
		abstract: map[string]*[wordLevels]wordLevel{}, uses: map[string]string{}, starts: map[string]int{},
		counts: map[string]*[wordLevels]int{}, begun: map[string]bool{},
	}
	abstract, num, level := "", "", 0
	err := a.walk(ctx, "word/numbering.xml", func(e xml.StartElement) error {
		value := local(e, "val")
		switch e.Name.Local {
		case "abstractNum":
			abstract, num = local(e, "abstractNumId"), ""
			n.abstract[abstract] = &[wordLevels]wordLevel{}
			n.counts[abstract] = &[wordLevels]int{}
		case "num":
			num = local(e, "numId")
		case "abstractNumId":
			n.uses[num] = value
		case "lvl", "lvlOverride":
			level = max(0, min(number(local(e, "ilvl"), 0), wordLevels-1))
		case "startOverride":
			n.starts[num+" "+strconv.Itoa(level)] = number(value, 1)
		case "start", "numFmt", "lvlText", "pStyle":
			n.property(e.Name.Local, value, abstract, num, level, styles)
		}
		return nil
	}, ignoreEnd, ignoreText)
	return n, ignoreMissing(err)
}

func (n *wordNumbering) property(name, value, abstract, num string, level int, styles map[string]wordStyle) {
	levels := n.abstract[abstract]
	if levels == nil || num != "" {
		return
	}
	switch l := &levels[level]; name {
	case "start":
		l.start = number(value, 1)
	case "numFmt":
		l.format = value
	case "lvlText":
		l.text = clip(value, 100)
	case "pStyle":
		if s, ok := styles[value]; ok {
			s.level = level
			styles[value] = s
		}
	}
}

// next counts a paragraph and gives what is shown before it; "" for a bullet.
func (n *wordNumbering) next(num string, level int) string {
	abstract := n.uses[num]
	levels, counts := n.abstract[abstract], n.counts[abstract]
	if levels == nil || counts == nil {
		return ""
	}
	level = min(level, wordLevels-1)
	if !n.begun[num] {
		n.begun[num] = true
		for i := range counts {
			if start, ok := n.starts[num+" "+strconv.Itoa(i)]; ok {
				counts[i] = start - 1
			}
		}
	}
	for i := 0; i <= level; i++ { // levels above that were skipped show their start
		if counts[i] == 0 && (i < level || levels[i].start != 1) {
			counts[i] = levels[i].start
			if i == level {
				counts[i]--
			}
		}
	}
	counts[level]++
	for i := level + 1; i < wordLevels; i++ {
		counts[i] = 0
	}
	if levels[level].format == "bullet" || levels[level].format == "none" {
		return ""
	}
	text := levels[level].text
	for i := range wordLevels {
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), counted(counts[i], levels[i].format))
	}
	return strings.TrimSpace(text)
}

// counted writes a number in a format; formats of other scripts are written as digits.
func counted(v int, format string) string {
	const most = 1000 // letters and Roman numerals beyond are noise
	if v <= 0 || v > most {
		return strconv.Itoa(v)
	}
	switch format {
	case "lowerLetter":
		return letters(v)
	case "upperLetter":
		return strings.ToUpper(letters(v))
	case "lowerRoman":
		return roman(v)
	case "upperRoman":
		return strings.ToUpper(roman(v))
	}
	return strconv.Itoa(v)
}

// letters counts a, b … z, aa, bb …
func letters(v int) string {
	return strings.Repeat(string(rune('a'+(v-1)%26)), (v-1)/26+1)
}

func roman(v int) string {
	var out strings.Builder
	for _, step := range []struct {
		value int
		sign  string
	}{
		{1000, "m"},
		{900, "cm"},
		{500, "d"},
		{400, "cd"},
		{100, "c"},
		{90, "xc"},
		{50, "l"},
		{40, "xl"},
		{10, "x"},
		{9, "ix"},
		{5, "v"},
		{4, "iv"},
		{1, "i"},
	} {
		for v >= step.value {
			out.WriteString(step.sign)
			v -= step.value
		}
	}
	return out.String()
}
