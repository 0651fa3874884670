package chunk

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-project/weir/services/ingester/internal/parse"
)

func TestChunksKnowWhereTheyStand(t *testing.T) {
	t.Parallel()
	var csv strings.Builder
	csv.WriteString("part,place,count\n")
	for i := range 400 {
		csv.WriteString(fmt.Sprintf("belt %d,\"shelf\n%d\",%d\n", i, i, i)) // a record takes two lines
	}
	doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(csv.String()), ContentType: "text/csv"})
	if err != nil {
		t.Fatal(err)
	}
	chunks := split(t, doc, Config{Size: 100})
	last := 0
	for i, c := range chunks {
		if c.LineFrom == 0 || c.LineFrom > c.LineTo || c.LineFrom < last || c.LineTo > 801 || c.LineTo-c.LineFrom > 200 {
			t.Errorf("chunk %d: lines %d-%d behind %d", i, c.LineFrom, c.LineTo, last)
		}
		last = c.LineFrom
		if i > 0 && !strings.Contains(c.Context, "part | place | count") {
			t.Errorf("chunk %d has no header: context %q, text %.60q", i, c.Context, c.Text)
		}
		if !reflect.DeepEqual(c.Kinds, []parse.Kind{parse.KindTable}) {
			t.Errorf("chunk %d: kinds %q", i, c.Kinds)
		}
	}
	if len(chunks) < 20 || chunks[len(chunks)-1].LineTo != 801 {
		t.Errorf("%d chunks, the last to line %d", len(chunks), chunks[len(chunks)-1].LineTo)
	}
}

func TestChunksStayInOnePlace(t *testing.T) {
	t.Parallel()
	place := func(slide int, attachment string) parse.Place {
		return parse.Place{Slide: slide, Attachment: attachment}
	}
	doc := parse.Document{Text: "one\ntwo\nthree\n", Blocks: []parse.Block{
		{Kind: parse.KindParagraph, Place: place(1, ""), End: 4, Page: 2},
		{Kind: parse.KindList, Place: place(2, ""), Start: 4, End: 8, Page: 3},
		{Kind: parse.KindCode, Place: place(2, "a.txt"), Start: 8, End: 14, Page: 1},
	}}
	chunks := split(t, doc, Config{})
	if len(chunks) != 3 || chunks[0].Place != place(1, "") || chunks[1].Place != place(2, "") || chunks[2].Place != place(2, "a.txt") {
		t.Errorf("got %+v", chunks)
	}
	whole, _, err := Split(doc, Config{Strategy: Whole})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) != 1 || whole[0].Place != (parse.Place{}) || whole[0].PageFrom != 0 || whole[0].PageTo != 0 ||
		!reflect.DeepEqual(whole[0].Kinds, []parse.Kind{parse.KindParagraph, parse.KindList, parse.KindCode}) {
		t.Errorf("whole: got %+v", whole)
	}
}
