package messages

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestChunkingDefaults(t *testing.T) {
	for _, c := range []struct{ in, want Chunking }{
		{Chunking{}, Chunking{ChunkTokens, 400, ptr(40)}},
		{Chunking{Strategy: ChunkTokens}, Chunking{ChunkTokens, 400, ptr(40)}},
		{Chunking{Size: 100}, Chunking{ChunkTokens, 100, ptr(10)}},
		{Chunking{Size: 8192}, Chunking{ChunkTokens, 8192, ptr(40)}},
		{Chunking{Overlap: ptr(0)}, Chunking{ChunkTokens, 400, ptr(0)}},
		{Chunking{Strategy: ChunkWhole}, Chunking{Strategy: ChunkWhole}},
	} {
		got := c.in.WithDefaults()
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: got %+v, want %+v", c.in, got, c.want)
		}
		if err := got.Validate("c"); err != nil {
			t.Errorf("%+v: %v", got, err)
		}
		if again := got.WithDefaults(); !reflect.DeepEqual(again, got) {
			t.Errorf("defaults of %+v change it to %+v", got, again)
		}
	}
}

func TestChunkingIsChecked(t *testing.T) {
	for _, c := range []struct {
		in    Chunking
		field string
	}{
		{Chunking{Strategy: "words"}, "c.strategy"},
		{Chunking{Strategy: ChunkWhole, Size: 400}, "c.size"},
		{Chunking{Strategy: ChunkWhole, Overlap: ptr(0)}, "c.size"},
		{Chunking{Size: 31}, "c.size"},
		{Chunking{Size: 8193}, "c.size"},
		{Chunking{Size: -1}, "c.size"},
		{Chunking{Overlap: ptr(-1)}, "c.overlap"},
		{Chunking{Overlap: ptr(201)}, "c.overlap"},
	} {
		wantField(t, fmt.Sprint(c.in), c.in.WithDefaults().Validate("c"), c.field)
	}
	wantField(t, "not resolved", Chunking{Strategy: ChunkTokens, Size: 400}.Validate("c"), "c.overlap")
	if err := (Chunking{Size: 32, Overlap: ptr(16)}).WithDefaults().Validate("c"); err != nil {
		t.Error(err)
	}
}

func TestMetadataSchemaIsChecked(t *testing.T) {
	types := []MetadataType{
		TypeString, TypeLong, TypeDouble, TypeBoolean, TypeDate, TypeStringList, TypeLongList, TypeDoubleList, TypeBooleanList, TypeDateList,
	}
	var good MetadataSchema
	for i := range MaxMetadataFields {
		good = append(good, MetadataField{Name: fmt.Sprintf("%03d", i) + strings.Repeat("é", 62), Type: types[i%len(types)]})
	}
	if err := good.Validate("metadata"); err != nil {
		t.Errorf("a schema at its bounds: %v", err)
	}
	field := func(name string, t MetadataType) MetadataSchema { return MetadataSchema{{Name: name, Type: t}} }
	for _, c := range []struct {
		in    MetadataSchema
		field string
	}{
		{append(good, MetadataField{Name: "x", Type: TypeLong}), "metadata"},
		{field("", TypeString), "metadata[0].name"},
		{field(strings.Repeat("a", 129), TypeString), "metadata[0].name"},
		{field("a.b", TypeString), "metadata[0].name"},
		{field("_score", TypeString), "metadata[0].name"},
		{field("a\x00", TypeString), "metadata[0].name"},
		{field("a\xff", TypeString), "metadata[0].name"},
		{MetadataSchema{{Name: "a", Type: TypeLong}, {Name: "a", Type: TypeLong}}, "metadata[1].name"},
		{field("a", ""), "metadata[0].type"},
		{field("a", "text"), "metadata[0].type"},
		{field("a", "string_list_list"), "metadata[0].type"},
		{field("a", "_list"), "metadata[0].type"},
		{field("a", "STRING"), "metadata[0].type"},
	} {
		wantField(t, c.field, c.in.Validate("metadata"), c.field)
	}
}

func TestMetadataSchemaFindsItsFields(t *testing.T) {
	s := sampleCreateKB().Metadata
	if f, ok := s.Field("acl"); !ok || !f.Internal || f.Type != TypeStringList {
		t.Errorf("got %+v, %v", f, ok)
	}
	if f, ok := s.Field("ACL"); ok {
		t.Errorf("got %+v for a name that is not declared", f)
	}
	for in, want := range map[MetadataType]MetadataType{TypeDateList: TypeDate, TypeDate: TypeDate} {
		if got, list := in.Element(); got != want || list != (in == TypeDateList) {
			t.Errorf("%s: got %s, %v", in, got, list)
		}
	}
}

func TestCreateKBIsChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*CreateKB)
		field  string
		code   Code
	}{
		{func(c *CreateKB) { c.KnowledgeBaseName = "" }, "knowledgeBaseName", CodeValidation},
		{func(c *CreateKB) { c.KnowledgeBaseName = AllScope }, "knowledgeBaseName", CodeValidation},
		{func(c *CreateKB) { c.Description = strings.Repeat("a", MaxDescriptionBytes+1) }, "description", CodeValidation},
		{func(c *CreateKB) { c.Description = "\x00" }, "description", CodeValidation},
		{func(c *CreateKB) { c.Tags = map[string]string{"a": strings.Repeat("a", MaxTagsBytes)} }, "tags", CodeValidation},
		{func(c *CreateKB) { c.Tags = map[string]string{"a": "\x00"} }, "tags.a", CodeValidation},
		{func(c *CreateKB) { c.IndexType = "flat" }, "indexType", CodeIndexTypeNotSupported},
		{func(c *CreateKB) { c.IndexType = IndexTypeBM25 }, "embeddingConfiguration", CodeValidation},
		{func(c *CreateKB) { c.Metadata = append(c.Metadata, c.Metadata[0]) }, "metadata[3].name", CodeValidation},
	} {
		kb := sampleCreateKB()
		c.change(kb)
		err := kb.Validate()
		wantField(t, c.field, err, c.field)
		if e, ok := AsError(err); ok && e.Code != c.code {
			t.Errorf("%s: code %s, want %s", c.field, e.Code, c.code)
		}
	}
	bm25 := &CreateKB{KnowledgeBaseName: "a", IndexType: IndexTypeBM25}
	if err := bm25.Validate(); err != nil {
		t.Errorf("a bm25 knowledge base without an embedding: %v", err)
	}
}
