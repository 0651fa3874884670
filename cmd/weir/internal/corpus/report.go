package corpus

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Outcome is what became of one file.
type Outcome struct {
	Expect  Expectation
	Status  messages.DocumentStatus
	Code    messages.Code // of a failure
	Chunks  int
	Pages   int    // as read; 0 where there are none
	Engine  string // that read the pages
	Took    time.Duration
	Peak    int64 // bytes of the process that read it
	Verdict Verdict
	Faults  []string      // why it is not what it should be
	Behind  time.Duration // until the ordinary document published behind it was ready; 0: none was
}

// Passed reports that nothing is wrong with a file.
func (o *Outcome) Passed() bool { return len(o.Faults) == 0 }

// Limits are what hostile files are held to.
type Limits struct {
	Wall   time.Duration
	Peak   int64 // bytes
	Behind time.Duration
}

// typedEnds are the codes that a file which cannot be read may end with.
func typedEnds() []messages.Code {
	return []messages.Code{
		messages.CodeDamagedDocument, messages.CodeParseLimit, messages.CodeUnsupportedMediaType, messages.CodeEmptyDocument,
		messages.CodeNoText, messages.CodePasswordRequired, messages.CodeInvalidEncoding,
	}
}

// Settle decides what is wrong with an outcome.
func (o *Outcome) Settle(l Limits) {
	switch o.Expect.Kind {
	case KindOK, KindEncrypted:
		if o.Status != messages.StatusReady {
			o.fault("ended %s %s", o.Status, o.Code)
			return
		}
		if o.Verdict.Text.Right < o.Verdict.Text.All {
			o.fault("%s", strings.Join(o.Verdict.Misses, "; "))
		}
	case KindScanned:
		if o.Status != messages.StatusFailed || o.Code != messages.CodeNoText {
			o.fault("ended %s %s, want NO_TEXT", o.Status, o.Code)
		}
	default:
		o.harmless(l)
	}
}

func (o *Outcome) harmless(l Limits) {
	if o.Status != messages.StatusReady && !slices.Contains(typedEnds(), o.Code) {
		o.fault("ended %s %s", o.Status, o.Code)
	}
	if o.Took > l.Wall {
		o.fault("took %s", o.Took)
	}
	if o.Peak > l.Peak {
		o.fault("its process held %d MiB", o.Peak>>20)
	}
	if o.Behind > l.Behind {
		o.fault("the document behind it was ready after %s", o.Behind)
	}
	for _, miss := range o.Verdict.Misses {
		if strings.HasPrefix(miss, "is there") {
			o.fault("%s", miss)
		}
	}
}

func (o *Outcome) fault(format string, args ...any) {
	o.Faults = append(o.Faults, fmt.Sprintf(format, args...))
}

// Line writes the line of a file.
func (o *Outcome) Line(w io.Writer) {
	mark, came := "ok  ", string(o.Status)
	if !o.Passed() {
		mark = "FAIL"
	}
	if o.Code != "" {
		came += " " + string(o.Code)
	}
	if o.Status == messages.StatusReady {
		came += fmt.Sprintf(" %d chunks, %d/%d phrases, %d/%d places", o.Chunks, o.Verdict.Text.Right, o.Verdict.Text.All, o.Verdict.Places.Right, o.Verdict.Places.All)
	}
	fmt.Fprintf(w, "%s %-40s %-9s -> %-58s %6.2f s %4d MiB %s", mark, o.Expect.File, o.Expect.Kind, came, o.Took.Seconds(), o.Peak>>20, o.Engine)
	if o.Behind > 0 {
		fmt.Fprintf(w, " (behind it: %.2f s)", o.Behind.Seconds())
	}
	fmt.Fprintln(w)
	for _, text := range append(slices.Clone(o.Faults), o.missedPlaces()...) {
		fmt.Fprintf(w, "       %s\n", text)
	}
}

func (o *Outcome) missedPlaces() []string {
	var out []string
	for _, miss := range o.Verdict.Misses {
		if strings.HasPrefix(miss, "not at") || strings.HasPrefix(miss, "not in") {
			out = append(out, miss)
		}
	}
	return out
}

// Report is a whole run.
type Report struct {
	Outcomes []*Outcome
	Gate     string // name of the PDF engine setting
}

// share is a count of something wanted.
type share struct {
	name      string
	got, all  int
	least     float64 // of all
	leastText string
}

func (s share) met() bool { return float64(s.got) >= s.least*float64(s.all) }

// Summary writes what the lines add up to, and reports whether the bars that decide are met.
func (r *Report) Summary(w io.Writer) bool {
	r.formats(w)
	r.engines(w)
	good := true
	for _, s := range r.shares() {
		mark := "met"
		if !s.met() {
			mark = "NOT MET"
		}
		fmt.Fprintf(w, "bar: %-52s %4d of %4d (want %s): %s\n", s.name, s.got, s.all, s.leastText, mark)
	}
	for _, s := range r.deciding() {
		good = good && s.met()
	}
	return good
}

// Last is the last line.
func (r *Report) Last() string {
	passed := 0
	for _, o := range r.Outcomes {
		if o.Passed() {
			passed++
		}
	}
	return fmt.Sprintf("%d passed, %d failed", passed, len(r.Outcomes)-passed)
}

func (r *Report) formats(w io.Writer) {
	type sum struct{ files, passed, phrases, phrasesAll, places, placesAll int }
	by := map[string]*sum{}
	for _, o := range r.Outcomes {
		s := by[o.Expect.Format()]
		if s == nil {
			s = &sum{}
			by[o.Expect.Format()] = s
		}
		s.files++
		if o.Passed() {
			s.passed++
		}
		s.phrases, s.phrasesAll = s.phrases+o.Verdict.Text.Right, s.phrasesAll+o.Verdict.Text.All
		s.places, s.placesAll = s.places+o.Verdict.Places.Right, s.placesAll+o.Verdict.Places.All
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(by)) {
		s := by[name]
		fmt.Fprintf(w, "format %-8s %3d of %3d files, %3d of %3d phrases, %3d of %3d places\n", name, s.passed, s.files, s.phrases, s.phrasesAll, s.places, s.placesAll)
	}
}

// engines writes which engine read how many pages, and how often the light one was believed wrongly.
func (r *Report) engines(w io.Writer) {
	pages, total, wrong := map[string]int{}, 0, []string{}
	for _, o := range r.Outcomes {
		if o.Engine == "" || o.Status != messages.StatusReady {
			continue
		}
		pages[o.Engine] += o.Pages
		total += o.Pages
		if o.Engine == "ledongthuc" && o.Verdict.Text.Right < o.Verdict.Text.All {
			wrong = append(wrong, o.Expect.File)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		fmt.Fprintf(w, "engine %-12s %5d of %5d pages, %5.1f %%\n", name, pages[name], total, 100*float64(pages[name])/float64(max(total, 1)))
	}
	fmt.Fprintf(w, "gate: setting %s, %d false accepts %s\n", r.Gate, len(wrong), strings.Join(wrong, " "))
}

// deciding are the bars the run stands or falls with.
func (r *Report) deciding() []share {
	harmless := share{name: "hostile and damaged files harmless", least: 1, leastText: "all"}
	read := share{name: "files of kind ok with all phrases", least: 0.97, leastText: "97 %"}
	for _, o := range r.Outcomes {
		switch o.Expect.Kind {
		case KindDamaged:
			harmless.count(o.Passed())
		case KindOK:
			read.count(o.Passed())
		}
	}
	return []share{harmless, read}
}

func (s *share) count(ok bool) {
	s.all++
	if ok {
		s.got++
	}
}

// shares are all bars.
func (r *Report) shares() []share {
	pdfs := share{name: "PDFs of kind ok or encrypted with all phrases", least: 63.0 / 65, leastText: "63 of 65"}
	counts := share{name: "PDFs of kind ok or encrypted with the right page count", least: 63.0 / 65, leastText: "63 of 65"}
	saved := share{name: "damaged PDFs with phrases that were recovered", least: 7.0 / 11, leastText: "7 of 11"}
	places := share{name: "facts about places and order", least: 0.95, leastText: "95 %"}
	ends := share{name: "scanned files end NO_TEXT", least: 1, leastText: "all"}
	for _, o := range r.Outcomes {
		pdf := strings.HasSuffix(o.Expect.File, ".pdf")
		switch {
		case pdf && (o.Expect.Kind == KindOK || o.Expect.Kind == KindEncrypted):
			pdfs.count(o.Passed())
			if o.Expect.Pages > 0 {
				counts.count(o.Expect.Pages == o.Pages)
			}
		case pdf && o.Expect.Kind == KindDamaged && len(o.Expect.Must) > 0:
			saved.count(o.Status == messages.StatusReady && o.Verdict.Text.Right == o.Verdict.Text.All)
		case o.Expect.Kind == KindScanned:
			ends.count(o.Passed())
		}
		places.got += o.Verdict.Places.Right
		places.all += len(o.Expect.Where) + len(o.Expect.Order)
	}
	return append(r.deciding(), pdfs, counts, saved, places, ends)
}
