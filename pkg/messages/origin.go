package messages

// Origin says which part of its source a chunk comes from. What a source does not have is left out; no
// chunk reaches from one slide, sheet, chapter or attachment into another.
type Origin struct {
	Slide      int      `json:"slide,omitempty"`      // of a presentation, from 1
	Sheet      string   `json:"sheet,omitempty"`      // of a workbook, by name
	Chapter    string   `json:"chapter,omitempty"`    // of a book, by its title in the table of contents
	Attachment string   `json:"attachment,omitempty"` // of a mail, by file name; of one inside another: outer/inner
	LineFrom   int      `json:"lineFrom,omitempty"`   // of the file, or row of the sheet, from 1
	LineTo     int      `json:"lineTo,omitempty"`
	Kinds      []string `json:"kinds,omitempty"` // of the blocks: heading, paragraph, list, table, code
}
