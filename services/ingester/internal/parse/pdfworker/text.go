package pdfworker

import (
	"errors"

	"github.com/ledongthuc/pdf"
)

// read gives the text of one page. What the library panics on costs the rest of this page only.
func (p page) read(number int) (out Page) {
	t := &textReader{fonts: map[string]*font{}}
	defer func() {
		out = Page{Number: number, Blocks: t.layout.finish(), Unmapped: t.unmapped, Fault: t.fault}
	}()
	defer func() {
		if x := recover(); x != nil {
			t.fault = fault(x)
		}
	}()
	if contents := p.value.Key("Contents"); !contents.IsNull() {
		t.run(contents, p.resources, identity(), 0)
	}
	return out
}

// textReader executes the operators of a content stream that place text.
type textReader struct {
	state     state
	stack     []state
	resources pdf.Value
	depth     int // of forms inside forms
	forms     int // executed on this page
	fonts     map[string]*font
	layout    layout
	unmapped  int
	fault     string
}

// state is the graphics state as far as text needs it.
type state struct {
	ctm, text, line       matrix
	font                  *font
	size                  float64
	charSpace, wordSpace  float64
	scale, leading, raise float64
}

var errOperands = errors.New("operator without its operands")

// run interprets one stream, or an array of streams, under the given resources.
func (t *textReader) run(stream, resources pdf.Value, base matrix, depth int) {
	saved, savedStack, savedResources, savedDepth, savedFonts := t.state, t.stack, t.resources, t.depth, t.fonts
	t.stack, t.resources, t.depth, t.fonts = nil, resources, depth, map[string]*font{}
	t.state.ctm, t.state.text, t.state.line = base, identity(), identity()
	if t.state.scale == 0 {
		t.state.scale = 1
	}
	pdf.Interpret(stream, t.operator)
	t.state, t.stack, t.resources, t.depth, t.fonts = saved, savedStack, savedResources, savedDepth, savedFonts
}

// operator executes one operator. The operands are taken off the stack whatever it is: they belong to
// this operator only.
func (t *textReader) operator(stack *pdf.Stack, name string) {
	args := operands(stack)
	s := &t.state
	switch name {
	case "q":
		const deepest = 1000
		if len(t.stack) < deepest {
			t.stack = append(t.stack, *s)
		}
	case "Q":
		if n := len(t.stack); n > 0 {
			*s, t.stack = t.stack[n-1], t.stack[:n-1]
		}
	case "cm":
		s.ctm = args.matrix().times(s.ctm)
	case "Do":
		t.form(args.value(0))
	case "BT":
		s.text, s.line = identity(), identity()
	case "Tf":
		s.font, s.size = t.font(args.value(0).Name()), args.float(1)
	case "Tc":
		s.charSpace = args.float(0)
	case "Tw":
		s.wordSpace = args.float(0)
	case "Tz":
		s.scale = args.float(0) / 100
	case "TL":
		s.leading = args.float(0)
	case "Ts":
		s.raise = args.float(0)
	default:
		t.textOperator(name, args)
	}
}

func (t *textReader) textOperator(name string, args args) {
	s := &t.state
	switch name {
	case "TD":
		s.leading = -args.float(1)
		s.move(args.float(0), args.float(1))
	case "Td":
		s.move(args.float(0), args.float(1))
	case "Tm":
		s.line = args.matrix()
		s.text = s.line
	case "T*":
		s.move(0, -s.leading)
	case "\"":
		s.wordSpace, s.charSpace = args.float(0), args.float(1)
		s.move(0, -s.leading)
		t.show(args.value(2).RawString())
	case "'":
		s.move(0, -s.leading)
		t.show(args.value(0).RawString())
	case "Tj":
		t.show(args.value(0).RawString())
	case "TJ":
		t.showAll(args.value(0))
	}
}

// move starts a new line at an offset from the start of the current one.
func (s *state) move(x, y float64) {
	s.line = matrix{1, 0, 0, 1, x, y}.times(s.line)
	s.text = s.line
}

func (s *state) advance(x float64) { s.text = matrix{1, 0, 0, 1, x, 0}.times(s.text) }

func (t *textReader) showAll(array pdf.Value) {
	for i := range array.Len() {
		switch v := array.Index(i); v.Kind() {
		case pdf.String:
			t.show(v.RawString())
		case pdf.Integer, pdf.Real:
			t.state.advance(-v.Float64() / 1000 * t.state.size * t.state.scale)
		}
	}
}

// show places one string: where it starts, where it ends, and what it says.
func (t *textReader) show(raw string) {
	s := &t.state
	if raw == "" || s.font == nil {
		return
	}
	text, unmapped := s.font.decode(raw)
	t.unmapped += unmapped
	width, glyphs, spaces := s.font.measure(raw)
	advance := (width/1000*s.size + float64(glyphs)*s.charSpace + float64(spaces)*s.wordSpace) * s.scale
	device := matrix{s.size * s.scale, 0, 0, s.size, 0, s.raise}.times(s.text).times(s.ctm)
	start := device.at(0, 0)
	s.advance(advance)
	end := matrix{1, 0, 0, 1, 0, s.raise}.times(s.text).times(s.ctm).at(0, 0)
	t.layout.add(text, start, end, device.direction(), device.height())
}

// form executes a form XObject with its own resources and matrix. Depth alone does not bound forms
// that call forms twice, so their number on a page is bounded too.
func (t *textReader) form(name pdf.Value) {
	const deepest, most = 12, 2000
	x := t.resources.Key("XObject").Key(name.Name())
	if x.Kind() != pdf.Stream || x.Key("Subtype").Name() != "Form" {
		return
	}
	if t.depth >= deepest || t.forms >= most {
		t.fault = "forms inside forms are over the limit"
		return
	}
	t.forms++
	base := t.state.ctm
	if m := x.Key("Matrix"); m.Len() == 6 {
		base = arrayMatrix(m).times(base)
	}
	resources := x.Key("Resources")
	if resources.Kind() != pdf.Dict {
		resources = t.resources
	}
	t.run(x, resources, base, t.depth+1)
}

func (t *textReader) font(name string) *font {
	f, ok := t.fonts[name]
	if !ok {
		f = newFont(t.resources.Key("Font").Key(name))
		t.fonts[name] = f
	}
	return f
}

// args are the operands of one operator, first one first.
type args []pdf.Value

func operands(stack *pdf.Stack) args {
	out := make(args, stack.Len())
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = stack.Pop()
	}
	return out
}

func (a args) value(i int) pdf.Value {
	if i >= len(a) {
		panic(errOperands)
	}
	return a[i]
}

func (a args) float(i int) float64 { return a.value(i).Float64() }

func (a args) matrix() matrix {
	return matrix{a.float(0), a.float(1), a.float(2), a.float(3), a.float(4), a.float(5)}
}

func arrayMatrix(v pdf.Value) matrix {
	var m matrix
	for i := range m {
		m[i] = v.Index(i).Float64()
	}
	return m
}
