package parse

import (
	"encoding/xml"
	"strings"
)

// shape is one object of a slide with text.
type shape struct {
	holder     string // type of placeholder: title, body, ftr …; "obj" when the file names none; "" for other shapes
	index      string // of the placeholder
	box        box
	free       bool // not a placeholder with bullets of its own
	paragraphs []*slideParagraph
	rows       [][]string // of a table, else nil
	diagram    string     // relation of a SmartArt drawing or chart
}

// box is in EMU; placed is false where the file leaves the position to the layout.
type box struct {
	x, y, w, h int
	placed     bool
}

type slideParagraph struct {
	text   strings.Builder
	level  int
	bullet int // 1: has a mark of its own, -1: has none by its own formatting, 0: as the placeholder
}

// item reports that a paragraph is a list item. Bodies of slides are lists unless formatted otherwise;
// a single paragraph is none.
func (s *shape) item(i int) bool {
	switch p := s.paragraphs[i]; {
	case p.bullet != 0:
		return p.bullet > 0
	case s.free:
		return p.level > 0
	}
	return s.holder == "body" || s.holder == "obj"
}

func (s *shape) joined() string {
	var out []string
	for _, p := range s.paragraphs {
		out = append(out, p.text.String())
	}
	return strings.Join(out, "\n")
}

// slideReader gathers shapes from the tokens of a slide.
type slideReader struct {
	limits Limits
	shapes []*shape
	open   *shape
	groups []box // position of the groups around; only the outermost counts
	skip   int
	inText bool
	cell   *strings.Builder // of a table
	bytes  int
	merge  struct {
		span        int
		left, above bool
	}
}

func (r *slideReader) start(e xml.StartElement) error {
	name := e.Name.Local
	if r.skip > 0 || name == "Fallback" {
		r.skip++
		return nil
	}
	switch name {
	case "grpSp":
		r.groups = append(r.groups, box{})
	case "sp", "graphicFrame", "pic", "cxnSp":
		r.open = &shape{free: true}
	case "off", "ext":
		r.position(e)
	case "tbl", "tr", "tc":
		return r.tableStart(e)
	}
	if r.open != nil {
		r.shapeStart(e)
	}
	return nil
}

func (r *slideReader) shapeStart(e xml.StartElement) {
	s := r.open
	switch e.Name.Local {
	case "ph":
		s.holder, s.index, s.free = local(e, "type"), local(e, "idx"), false
		if s.holder == "" {
			s.holder = "obj"
		}
	case "p":
		s.paragraphs = append(s.paragraphs, &slideParagraph{})
	case "pPr":
		if n := len(s.paragraphs); n > 0 {
			s.paragraphs[n-1].level = max(0, min(number(local(e, "lvl"), 0), 8))
		}
	case "buChar", "buAutoNum", "buBlip":
		r.bullet(1)
	case "buNone":
		r.bullet(-1)
	case "t":
		r.inText = true
	case "br":
		r.write("\n")
	case "tab":
		r.write("\t")
	case "relIds":
		for _, a := range e.Attr {
			if a.Name.Local == "dm" {
				s.diagram = a.Value
			}
		}
	case "chart":
		s.diagram = relationID(e)
	}
}

func (r *slideReader) bullet(kind int) {
	if n := len(r.open.paragraphs); n > 0 {
		r.open.paragraphs[n-1].bullet = kind
	}
}

// position takes the first offset and extent of a shape, or of the outermost group around it.
func (r *slideReader) position(e xml.StartElement) {
	var at *box
	switch {
	case r.open != nil:
		at = &r.open.box
	case len(r.groups) > 0:
		at = &r.groups[len(r.groups)-1]
	default:
		return
	}
	switch {
	case e.Name.Local == "off" && !at.placed:
		at.x, at.y, at.placed = number(local(e, "x"), 0), number(local(e, "y"), 0), true
	case e.Name.Local == "ext" && at.w == 0 && at.h == 0:
		at.w, at.h = number(local(e, "cx"), 0), number(local(e, "cy"), 0)
	}
}

func (r *slideReader) tableStart(e xml.StartElement) error {
	s := r.open
	if s == nil {
		return nil
	}
	switch e.Name.Local {
	case "tbl":
		s.rows = [][]string{}
	case "tr":
		s.rows = append(s.rows, nil)
	case "tc":
		r.cell = &strings.Builder{}
		s.paragraphs = nil
		r.merge.span = max(1, min(number(local(e, "gridSpan"), 1), r.limits.TableColumns))
		r.merge.left, r.merge.above = truth(local(e, "hMerge")), truth(local(e, "vMerge"))
	}
	return nil
}

func truth(value string) bool { return value == "1" || value == "true" || value == "on" }

func (r *slideReader) text(t []byte) {
	if r.inText && r.skip == 0 && r.open != nil {
		r.write(string(t))
	}
}

func (r *slideReader) write(text string) {
	r.bytes += len(text)
	if n := len(r.open.paragraphs); n > 0 && r.bytes <= 2*r.limits.TextBytes {
		r.open.paragraphs[n-1].text.WriteString(text)
	}
}

func (r *slideReader) end(name string) error {
	if r.skip > 0 {
		r.skip--
		return nil
	}
	switch name {
	case "t":
		r.inText = false
	case "tc":
		return r.endCell()
	case "sp", "graphicFrame", "pic", "cxnSp":
		r.endShape()
	case "grpSp":
		if n := len(r.groups); n > 0 {
			r.groups = r.groups[:n-1]
		}
	}
	if r.bytes > 2*r.limits.TextBytes {
		return limitError("text of a slide", 2*r.limits.TextBytes, "bytes")
	}
	return nil
}

func (r *slideReader) endShape() {
	s := r.open
	r.open = nil
	if s == nil {
		return
	}
	if len(r.groups) > 0 { // positions inside a group are in its own coordinates
		s.box = r.groups[0]
	}
	if len(s.paragraphs) > 0 || s.rows != nil || s.diagram != "" {
		r.shapes = append(r.shapes, s)
	}
}

// endCell puts the cell into its row; a cell that continues the one above or to the left repeats it.
func (r *slideReader) endCell() error {
	s := r.open
	if s == nil || len(s.rows) == 0 {
		return nil
	}
	row := &s.rows[len(s.rows)-1]
	text := collapse(s.joined())
	s.paragraphs = nil
	switch n := len(*row); {
	case r.merge.left && n > 0:
		text = repeated((*row)[n-1])
	case r.merge.above && len(s.rows) > 1 && n < len(s.rows[len(s.rows)-2]):
		text = repeated(s.rows[len(s.rows)-2][n])
	}
	r.bytes += len(text)
	*row = append(*row, text)
	return nil
}
