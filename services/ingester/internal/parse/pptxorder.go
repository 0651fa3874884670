package parse

import (
	"cmp"
	"slices"
)

// layout is where a slide layout puts its placeholders.
type layout map[string]box

func (d *deckReader) layout(part string) (layout, error) {
	if known, ok := d.layouts[part]; ok {
		return known, nil
	}
	out := layout{}
	d.layouts[part] = out
	r := &slideReader{limits: d.archive.limits}
	if err := d.archive.walk(d.ctx, part, r.start, r.end, r.text); err != nil {
		return out, ignoreMissing(err)
	}
	for _, s := range r.shapes {
		if s.box.placed {
			out["index "+s.index], out["type "+s.holder] = s.box, s.box
		}
	}
	return out, nil
}

// complete fills positions in that a slide leaves to its layout.
func (l layout) complete(shapes []*shape) {
	for _, s := range shapes {
		if s.box.placed || s.holder == "" {
			continue
		}
		if at, ok := l["index "+s.index]; ok && s.index != "" {
			s.box = at
		} else if at, ok := l["type "+s.holder]; ok {
			s.box = at
		}
	}
}

// readingOrder puts the title first and footers last. Placeholders keep the order of the file, which follows the layout;
// with free shapes among them, whose order is that of drawing, positions decide.
func readingOrder(shapes []*shape) []*shape {
	var titles, rest, furniture []*shape
	free, placed := false, true
	for _, s := range shapes {
		switch s.holder {
		case "title", "ctrTitle":
			titles = append(titles, s)
			continue
		case "ftr", "hdr", "dt", "sldNum":
			furniture = append(furniture, s)
			continue
		}
		rest = append(rest, s)
		free = free || s.holder == ""
		placed = placed && s.box.placed
	}
	const many = 500 // shapes: ordering them by cuts takes their square
	if free && placed && len(rest) <= many {
		rest = cut(rest, true)
	}
	return append(append(titles, rest...), furniture...)
}

// cut divides shapes at the gaps between rows, and each row at the gaps between columns, in turns. What
// cannot be divided stands in the order of the upper left corners.
func cut(shapes []*shape, rows bool) []*shape {
	if len(shapes) < 2 {
		return shapes
	}
	for _, byRows := range []bool{rows, !rows} {
		bands := bandsOf(shapes, byRows)
		if len(bands) < 2 {
			continue
		}
		var out []*shape
		for _, band := range bands {
			out = append(out, cut(band, !byRows)...)
		}
		return out
	}
	slices.SortStableFunc(shapes, func(a, b *shape) int {
		return cmp.Or(cmp.Compare(a.box.y, b.box.y), cmp.Compare(a.box.x, b.box.x))
	})
	return shapes
}

// bandsOf groups shapes that overlap in one direction by more than a tenth.
func bandsOf(shapes []*shape, rows bool) [][]*shape {
	span := func(s *shape) (from, to int) {
		if rows {
			return s.box.y, s.box.y + s.box.h*9/10
		}
		return s.box.x, s.box.x + s.box.w*9/10
	}
	sorted := slices.Clone(shapes)
	slices.SortStableFunc(sorted, func(a, b *shape) int {
		x, _ := span(a)
		y, _ := span(b)
		return cmp.Compare(x, y)
	})
	var out [][]*shape
	reach := 0
	for i, s := range sorted {
		from, to := span(s)
		if i == 0 || from >= reach {
			out = append(out, nil)
			reach = to
		}
		out[len(out)-1] = append(out[len(out)-1], s)
		reach = max(reach, to)
	}
	return out
}
