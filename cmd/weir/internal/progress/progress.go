// Package progress shows how far a set of documents has come: bars that are redrawn in place on a
// terminal, and a line now and then everywhere else.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Row is one state and how many are in it.
type Row struct {
	Label string
	Count int
}

// View is what is shown at one moment.
type View struct {
	Total int // everything known so far
	Rows  []Row
	Note  string // beside the bars: a rate, or what is being waited for
}

// plainEvery is the least time between the first lines of a plain display; it grows to plainAtMost, so that
// the log of a long run stays readable.
const (
	plainEvery  = 5 * time.Second
	plainAtMost = time.Minute
)

// barWidth is the width of a full bar in characters; a whole row stays under 72.
const barWidth = 32

// Display shows views. Its methods are safe for concurrent use. Errors of the writer are kept and
// returned by Close: a broken pipe must not lose documents.
type Display struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	live  bool
	drawn int // lines of the bars on the screen
	last  string
	next  time.Time // of a plain display
	every time.Duration
	err   error
}

// New returns a display on w. live says that w is a terminal, whose lines can be drawn again. now may be
// nil.
func New(w io.Writer, live bool, now func() time.Time) *Display {
	if now == nil {
		now = time.Now
	}
	return &Display{w: w, live: live, now: now, next: now().Add(plainEvery), every: plainEvery}
}

// Show draws v in place of what was drawn before. Not on a terminal it prints one line, at most every
// five seconds, later every minute, and only when something changed.
func (d *Display) Show(v View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live {
		d.redraw(bars(v))
		return
	}
	if now := d.now(); !now.Before(d.next) {
		d.every = min(d.every*3/2, plainAtMost)
		d.next = now.Add(d.every)
		d.plain(v)
	}
}

// Line prints a line above the bars.
func (d *Display) Line(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	bars := d.last
	if d.live {
		d.clear()
	}
	d.print(fmt.Sprintf(format, args...) + "\n")
	if d.live && bars != "" {
		d.redraw(bars)
	}
}

// Close shows v for the last time and returns the first error of the writer.
func (d *Display) Close(v View) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live {
		d.redraw(bars(v))
	} else {
		d.plain(v)
	}
	d.last, d.drawn = "", 0
	return d.err
}

func (d *Display) plain(v View) {
	line := summary(v)
	if line == d.last {
		return
	}
	d.last = line
	d.print(line + "\n")
}

func (d *Display) redraw(text string) {
	if text == d.last && d.drawn > 0 {
		return
	}
	d.clear()
	d.print(text)
	d.last, d.drawn = text, strings.Count(text, "\n")
}

// clear removes the bars: up to their first line, then everything below.
func (d *Display) clear() {
	if d.drawn > 0 {
		d.print(fmt.Sprintf("\x1b[%dA\r\x1b[J", d.drawn))
		d.drawn, d.last = 0, ""
	}
}

func (d *Display) print(s string) {
	if _, err := io.WriteString(d.w, s); err != nil && d.err == nil {
		d.err = fmt.Errorf("write progress: %w", err)
	}
}

// bars is one line a row, and the note.
func bars(v View) string {
	var b strings.Builder
	for _, r := range v.Rows {
		fmt.Fprintf(&b, "  %-10s %s %6d\n", r.Label, bar(r.Count, v.Total), r.Count)
	}
	fmt.Fprintf(&b, "  %-10s %*s %6d", "of", barWidth, "", v.Total)
	if v.Note != "" {
		fmt.Fprintf(&b, "   %s", v.Note)
	}
	return b.String() + "\n"
}

func bar(count, total int) string {
	filled := 0
	if total > 0 {
		filled = min(count*barWidth/total, barWidth)
	}
	if count > 0 {
		filled = max(filled, 1)
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}

// summary is a view in one line; states in which nothing is are left out.
func summary(v View) string {
	parts := []string{}
	for _, r := range v.Rows {
		if r.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", r.Label, r.Count))
		}
	}
	line := fmt.Sprintf("%d documents: %s", v.Total, strings.Join(parts, ", "))
	if v.Note != "" {
		line += " (" + v.Note + ")"
	}
	return line
}
