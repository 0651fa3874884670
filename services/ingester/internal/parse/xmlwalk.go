package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
)

const xmlDepth = 1000

// walkXML runs a token loop with a depth limit. Entities other than XML's own are an error, so nothing
// expands and nothing is fetched.
func walkXML(ctx context.Context, in io.Reader, l Limits, start func(xml.StartElement) error, end func(string) error, text func([]byte)) error {
	decoder := xml.NewDecoder(in)
	decoder.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		enc, _ := lookupCharset(strings.ToLower(label))
		if enc == nil {
			return nil, damaged("the XML is in charset %s, which is not known", clip(label, 40))
		}
		return enc.NewDecoder().Reader(in), nil
	}
	for depth, count := 0, 0; ; count++ {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			if depth > 0 {
				return damaged("the XML ends too early")
			}
			return nil
		}
		if err != nil {
			return xmlError(err)
		}
		if count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > l.depth(xmlDepth) {
				return limitError("nesting of XML", l.depth(xmlDepth), "levels")
			}
			err = start(t)
		case xml.EndElement:
			if depth--; depth < 0 {
				return damaged("the XML closes an element that is not open")
			}
			err = end(t.Name.Local)
		case xml.CharData:
			text(t)
		}
		if err != nil {
			return err
		}
	}
}

// xmlError keeps a limit hit while inflating and says damaged to the rest.
func xmlError(err error) error {
	var limit *partLimitError
	if errors.As(err, &limit) {
		return limit.err
	}
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return damaged("the XML is broken at line %d", syntax.Line)
	}
	return damaged("the archive or its XML is broken")
}

func local(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(text string, standard int) int {
	if v, err := strconv.Atoi(text); err == nil {
		return v
	}
	return standard
}
