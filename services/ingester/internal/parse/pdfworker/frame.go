package pdfworker

import (
	"time"

	"github.com/weir-project/weir/pkg/messages"
)

// Command is the hidden argument that makes a binary a worker.
const Command = "__parse-pdf"

// Limits bound one file. All fields must be set.
type Limits struct {
	Wall        time.Duration `json:"wall"`
	Stall       time.Duration `json:"stall"`       // without a new page
	MemoryBytes int64         `json:"memoryBytes"` // address space beyond what the process has at start
	FileBytes   int64         `json:"fileBytes"`
	Pages       int           `json:"pages"`
	TextBytes   int           `json:"textBytes"` // text of all pages
}

// Page is one page as the child read it.
type Page struct {
	Number int     `json:"number"` // physical, from 1
	Blocks []Block `json:"blocks,omitempty"`
	// Fault says why part of the page is missing, in plain words; empty when the page was read whole.
	Fault string `json:"fault,omitempty"`
	// Unmapped counts characters whose font has no Unicode mapping.
	Unmapped int `json:"unmapped,omitempty"`
}

// Block is a run of lines that stand together.
type Block struct {
	Lines []Line `json:"lines"`
}

// Line is one line of text.
type Line struct {
	Text  string  `json:"text"`
	Size  float64 `json:"size"`  // of the font, in points
	Width float64 `json:"width"` // in points
}

// Document is what Extract gives.
type Document struct {
	Title   string
	Pages   []Page
	Missing []string // limits that this system does not have
}

// frame is one JSON line of the child's output.
type frame struct {
	Start *start          `json:"start,omitempty"`
	Page  *Page           `json:"page,omitempty"`
	Fail  *messages.Error `json:"fail,omitempty"`
	End   bool            `json:"end,omitempty"`
}

type start struct {
	Title   string   `json:"title,omitempty"`
	Missing []string `json:"missing,omitempty"`
}
