package parse

import (
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// flatHTML reads a page from its tokens: headings, paragraphs and preformatted text, whatever the depth.
func flatHTML(ctx context.Context, s source, b *builder) error {
	f := &flatReader{htmlWalker: htmlWalker{ctx: ctx, b: b}, tokens: html.NewTokenizer(strings.NewReader(s.text))}
	for f.err == nil {
		kind := f.tokens.Next()
		if kind == html.ErrorToken {
			if !errors.Is(f.tokens.Err(), io.EOF) {
				return damaged("the HTML cannot be read")
			}
			break
		}
		f.token(kind)
	}
	f.close("")
	if b.title == "" {
		b.title = f.firstHeading
	}
	return f.err
}

// flatReader gathers text until a tag ends what it belongs to.
type flatReader struct {
	htmlWalker
	tokens *html.Tokenizer
	drop   string // element whose content is being dropped
	open   string // heading, title or pre that is open
}

func (f *flatReader) token(kind html.TokenType) {
	switch kind {
	case html.TextToken:
		if f.drop != "" {
			return
		}
		text := string(f.tokens.Text())
		if f.open == "pre" {
			f.inline.WriteString(text)
		} else {
			inlineText(&f.inline, text)
		}
	case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
		tag, _ := f.tokens.TagName()
		f.tag(string(tag), kind)
	}
}

func (f *flatReader) tag(name string, kind html.TokenType) {
	end := kind == html.EndTagToken
	switch {
	case f.drop != "":
		if end && name == f.drop {
			f.drop = ""
		}
	case dropped(name):
		if kind == html.StartTagToken {
			f.drop = name
		}
	case name == "br":
		f.inline.WriteByte('\n')
	case name == "title" || name == "pre" || headingLevel(name) > 0:
		if end {
			f.close(f.open)
		} else {
			f.close("")
			f.open = name
		}
	case blockElement(name) && f.open != "pre":
		f.close("")
	}
}

// close emits what was gathered as the given element; "" is a paragraph.
func (f *flatReader) close(as string) {
	f.open = ""
	text := f.inline.String()
	switch {
	case as == "title":
		f.inline.Reset()
		if f.b.title == "" {
			f.b.title = collapse(text)
		}
	case as == "pre":
		f.inline.Reset()
		f.part(part{kind: KindCode, text: text})
	case headingLevel(as) > 0:
		f.inline.Reset()
		if f.firstHeading == "" {
			f.firstHeading = collapse(text)
		}
		f.part(part{kind: KindHeading, level: headingLevel(as), text: collapse(text)})
	default:
		f.flush()
	}
}
