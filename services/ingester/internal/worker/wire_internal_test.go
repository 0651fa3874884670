package worker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

// fill gives every field of a struct a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.String:
		v.SetString(strings.Repeat("é", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n) % 256) //nolint:gosec // it is positive
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Kind().String())
	}
}

// TestMessagesComeBackWithEveryField: a field that was forgotten comes back empty.
func TestMessagesComeBackWithEveryField(t *testing.T) {
	t.Parallel()
	var r request
	var a answer
	var e end
	f := frame{Kind: frameFail}
	n := 0
	for _, v := range []any{&r, &a, &e, &f.Fail} {
		fill(reflect.ValueOf(v).Elem(), &n)
	}
	data := frame{Kind: frameData, Data: []byte("\xff\x00")}
	for _, test := range []struct{ sent, got message }{{&r, &request{}}, {&a, &answer{}}, {&e, &end{}}, {&f, &frame{}}, {&data, &frame{}}} {
		cross(t, test.sent, test.got)
	}
}

// TestBlocksComeBackWithEveryField checks each field alone too, since those that are empty are left out.
func TestBlocksComeBackWithEveryField(t *testing.T) {
	t.Parallel()
	path := []string{"One", "Two"}
	f := frame{Kind: frameBlocks, Blocks: make([]parse.Block, 4)}
	n := 0
	for i := range f.Blocks {
		fill(reflect.ValueOf(&f.Blocks[i]).Elem(), &n)
		f.Blocks[i].Kind = kinds[i]
	}
	f.Blocks[1].HeadingPath, f.Blocks[2].HeadingPath = path, path
	for i, whole := 0, reflect.ValueOf(f.Blocks[0]); i < whole.NumField(); i++ {
		if name := whole.Type().Field(i).Name; name != "Kind" {
			one := parse.Block{Kind: parse.KindCode}
			reflect.ValueOf(&one).Elem().Field(i).Set(whole.Field(i))
			f.Blocks = append(f.Blocks, one)
		}
	}
	var got frame
	cross(t, &f, &got)
	if &got.Blocks[1].HeadingPath[0] != &got.Blocks[2].HeadingPath[0] {
		t.Error("neighbours do not share their path")
	}
}

func cross(t *testing.T, sent, got message) {
	t.Helper()
	room := int64(1 << 20)
	if err := readMessage(bufio.NewReader(bytes.NewReader(written(t, sent))), got, 1<<20, &room); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("error %v, got\n%+v, want\n%+v", err, got, sent)
	}
}

func written(t testing.TB, all ...message) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := bufio.NewWriter(&buf)
	for _, m := range all {
		if err := writeMessage(out, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// received takes what a child sent.
func received(t testing.TB, sent []byte, l parse.Limits) (*transfer, error) {
	t.Helper()
	tr := &transfer{child: &child{reader: bufio.NewReader(bytes.NewReader(sent))}, limits: l}
	tr.room = tr.most()
	return tr, tr.read(t.Context(), &watch{began: time.Now()})
}

// TestAChildGoneWrongEndsInATypedError: nothing that a child sends may be believed.
func TestAChildGoneWrongEndsInATypedError(t *testing.T) {
	t.Parallel()
	l := parse.Limits{TextBytes: 100}
	text := frame{Kind: frameText, Text: "0123456789"}
	ends := frame{Kind: frameEnd}
	blocks := func(all ...parse.Block) *frame {
		for i := range all {
			all[i].Kind = parse.KindParagraph
		}
		return &frame{Kind: frameBlocks, Blocks: all}
	}
	long := frame{Kind: frameText, Text: strings.Repeat("a", 60)}
	many := written(t, blocks(make([]parse.Block, 20_000)...))
	huge := binary.BigEndian.AppendUint32(nil, frameBytes+1)
	lying := []byte("\x00\x00\x00\x05\x06\xff\xff\xff\x0f") // a list longer than its message
	for name, test := range map[string]struct {
		sent []byte
		code messages.Code // empty: it is judged by how the child ended
	}{
		"nothing":                     {nil, ""},
		"cut short":                   {written(t, &text, &ends)[:20], ""},
		"frame too long":              {huge, messages.CodeParseLimit},
		"text over its limit":         {written(t, &long, &long, &ends), messages.CodeParseLimit},
		"blocks over their limit":     {bytes.Repeat(many, 10), messages.CodeParseLimit},
		"texts without an end":        {bytes.Repeat(written(t, &frame{Kind: frameText}), 300_000), messages.CodeParseLimit},
		"longer than its message":     {lying, messages.CodeDamagedDocument},
		"no such frame":               {[]byte("\x00\x00\x00\x01\x40"), messages.CodeDamagedDocument},
		"an empty frame":              {make([]byte, 4), messages.CodeDamagedDocument},
		"more than its fields":        {[]byte("\x00\x00\x00\x02\x02\x00"), messages.CodeDamagedDocument},
		"an image for nobody":         {written(t, &frame{Kind: frameImage}), messages.CodeDamagedDocument},
		"text without blocks":         {written(t, &text, &ends), messages.CodeDamagedDocument},
		"a gap between blocks":        {written(t, &text, blocks(parse.Block{End: 4}, parse.Block{Start: 5, End: 10}), &ends), messages.CodeDamagedDocument},
		"a block behind the text":     {written(t, &text, blocks(parse.Block{End: 11}), &ends), messages.CodeDamagedDocument},
		"a block that ends before":    {written(t, &text, blocks(parse.Block{End: -1}), &ends), messages.CodeDamagedDocument},
		"a block within a character":  {written(t, &frame{Kind: frameText, Text: "é"}, blocks(parse.Block{End: 1}, parse.Block{Start: 1, End: 2}), &ends), messages.CodeDamagedDocument},
		"a header within a character": {written(t, &frame{Kind: frameText, Text: "aé"}, blocks(parse.Block{End: 3, HeaderEnd: 2}), &ends), messages.CodeDamagedDocument},
		"a text with a NUL":           {written(t, &frame{Kind: frameText, Text: "a\x00b"}, blocks(parse.Block{End: 3}), &ends), messages.CodeDamagedDocument},
		"a header behind its rows":    {written(t, &text, blocks(parse.Block{End: 10, HeaderEnd: 11}), &ends), messages.CodeDamagedDocument},
	} {
		tr, err := received(t, test.sent, l)
		var code messages.Code
		if e, ok := messages.AsError(err); ok {
			code = e.Code
		}
		if code != test.code || (err == nil) != (test.code == "") || tr.ended {
			t.Errorf("%s: got error %v, ended %t, want %q", name, err, tr.ended, test.code)
		}
	}
}

// TestAProcessIsUsedAgainOnlyForSmallTexts: that it may be is its own word.
func TestAProcessIsUsedAgainOnlyForSmallTexts(t *testing.T) {
	t.Parallel()
	p := New(Config{})
	for name, test := range map[string]struct {
		data   string
		format string
		want   bool
	}{
		"small text":          {"# A text", "md", true},
		"a PDF":               {"%PDF-1.7 small", "txt", false},
		"an archive":          {"PK\x03\x04\x14\x00\x00\x00", "txt", false},
		"large":               {strings.Repeat("a", lightBytes+1), "txt", false},
		"a format of its own": {"{\\rtf1 a}", "rtf", false},
	} {
		j := p.job(opParse, bytesInput([]byte(test.data)))
		if err := p.peek(t.Context(), &j); err != nil {
			t.Fatal(err)
		}
		tr := transfer{job: j}
		if err := tr.close(&end{Format: test.format, Reusable: true}); err != nil || tr.result.reusable != test.want {
			t.Errorf("%s: used again %v, error %v, want %v", name, tr.result.reusable, err, test.want)
		}
	}
}

func TestTextFromAChildIsAsADatabaseTakesIt(t *testing.T) {
	t.Parallel()
	tr, err := received(t, written(t, &frame{Kind: frameEnd, End: end{Title: "a\xffb\x00"}}), parse.Limits{})
	if got := tr.result.doc.Title; err != nil || got != "a\ufffdb" {
		t.Errorf("got %q, error %v", got, err)
	}
}

func TestWhatAChildSaysOfItsFailureIsShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	said := messages.Error{Code: messages.Code(long), Message: long, Field: long, Stage: long}
	tr, err := received(t, written(t, &frame{Kind: frameFail, Fail: said}, &frame{Kind: frameEnd}), parse.Limits{})
	if err == nil {
		err = tr.failure()
	}
	if e, ok := messages.AsError(err); !ok || len(err.Error()) > 2000 || len(e.Stage) > 100 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// FuzzFrames has a child send anything: what is taken is sound and within its limits.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{"# One\n\nText.\n\n## Two\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "A text.\n"} {
		doc, err := parse.Parse(f.Context(), parse.Input{Data: []byte(text), ContentType: "text/markdown"})
		if err != nil {
			f.Fatal(err)
		}
		var buf bytes.Buffer
		s := &server{out: bufio.NewWriter(&buf)}
		if err := s.document(doc); err != nil {
			f.Fatal(err)
		}
		if err := s.last(s.end(doc, true)); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	f.Add(written(f, &frame{Kind: frameProgress}, &frame{Kind: frameData, Data: []byte("%PDF-")}, &frame{Kind: frameFail, Fail: messages.Error{Code: "x"}}))
	limits := parse.Limits{TextBytes: 1000}
	f.Fuzz(func(t *testing.T, sent []byte) {
		tr, err := received(t, sent, limits)
		if err != nil {
			if _, ok := messages.AsError(err); !ok {
				t.Fatalf("error without a code: %v", err)
			}
		}
		if !tr.ended {
			return
		}
		doc := tr.result.doc
		if len(doc.Text) > limits.TextBytes || !utf8.ValidString(doc.Text) || strings.Contains(doc.Text, "\x00") || !sound(&doc) {
			t.Errorf("taken: %+v", doc)
		}
		for _, b := range doc.Blocks {
			if !utf8.ValidString(doc.Text[b.Start:b.End]) {
				t.Errorf("a block within a character: %+v", b)
			}
		}
	})
}
