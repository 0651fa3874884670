package pdf

import (
	"strings"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Entry is one title of the outline (the bookmarks).
type Entry struct {
	Title string
	Level int // from 1
	Page  int // where it leads, from 1; 0 when that is not known
}

// Outline lists the bookmarks in order. Trees that are deep, long or contain themselves are cut.
func (f *File) Outline() []Entry {
	w := &outlineWalk{file: f}
	w.children(nil, 1)
	return w.out
}

type outlineWalk struct {
	file  *File
	out   []Entry
	steps int
}

func (w *outlineWalk) children(parent *references.FPDF_BOOKMARK, level int) {
	const deepest = 6
	if level > deepest {
		return
	}
	first, err := w.file.engine.FPDFBookmark_GetFirstChild(&requests.FPDFBookmark_GetFirstChild{Document: w.file.ref, Bookmark: parent})
	if err != nil {
		return // an outline is an extra: the text is there without it
	}
	const most = 5000
	for at := first.Bookmark; at != nil; {
		if w.steps++; w.steps > most {
			return
		}
		w.entry(*at, level)
		w.children(at, level+1)
		next, err := w.file.engine.FPDFBookmark_GetNextSibling(&requests.FPDFBookmark_GetNextSibling{Document: w.file.ref, Bookmark: *at})
		if err != nil {
			return
		}
		at = next.Bookmark
	}
}

func (w *outlineWalk) entry(at references.FPDF_BOOKMARK, level int) {
	title, err := w.file.engine.FPDFBookmark_GetTitle(&requests.FPDFBookmark_GetTitle{Bookmark: at})
	const longest = 500
	if err != nil || strings.TrimSpace(title.Title) == "" || len(title.Title) > longest {
		return
	}
	w.out = append(w.out, Entry{Title: title.Title, Level: level, Page: w.target(at)})
}

func (w *outlineWalk) target(at references.FPDF_BOOKMARK) int {
	dest, err := w.file.engine.FPDFBookmark_GetDest(&requests.FPDFBookmark_GetDest{Document: w.file.ref, Bookmark: at})
	if err != nil || dest.Dest == nil {
		return 0
	}
	index, err := w.file.engine.FPDFDest_GetDestPageIndex(&requests.FPDFDest_GetDestPageIndex{Document: w.file.ref, Dest: *dest.Dest})
	if err != nil || index.Index < 0 {
		return 0
	}
	return index.Index + 1
}
