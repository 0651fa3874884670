"""Writes the office, book, mail and other test files of this folder's neighbours. Standard library only.

Run by hand when a file changes: python3 formats.py, in this folder. The files are the project's own.
"""
import base64
import pathlib
import quopri
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
CORE = ('<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>%s</dc:title></cp:coreProperties>')


def put(name, data):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def archive(name, entries):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as z:
        for entry, text in entries.items():
            info = zipfile.ZipInfo(entry, (2026, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if entry == "mimetype" else zipfile.ZIP_DEFLATED
            z.writestr(info, text)


def rels(*lines):
    return ('<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' + "".join(
        f'<Relationship Id="{i}" Type="{REL}{kind}" Target="{target}"/>' for i, kind, target in lines) + "</Relationships>")


# --- docx: what reviewers leave behind, numbered headings, notes, boxes, running lines
def p(text, props=""):
    return f"<w:p><w:pPr>{props}</w:pPr>{text}</w:p>"


def r(text, props=""):
    return f'<w:r><w:rPr>{props}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


cell = lambda text, props="": f"<w:tc><w:tcPr>{props}</w:tcPr>{text}</w:tc>"
style = lambda name: f'<w:pStyle w:val="{name}"/>'
number = lambda num, level=0: f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num}"/></w:numPr>'
nested = "<w:tbl><w:tr>" + cell(p(r("inner a"))) + cell(p(r("inner b"))) + "</w:tr></w:tbl>"
body = "".join([
    p(r("Pump station"), style("Title")),
    p(r("Scope"), style("H1")),
    p(r("The station lifts ") + '<w:del w:id="1" w:author="a"><w:r><w:delText>DELETED WORDS </w:delText></w:r></w:del>' +
      '<w:ins w:id="2" w:author="a">' + r("storm water ") + "</w:ins>" + r("into the weir.") +
      '<w:r><w:commentReference w:id="0"/></w:r><w:r><w:footnoteReference w:id="2"/></w:r>'),
    p(r("Parts"), style("H2")),
    p(r("Motor"), number(2)), p(r("Stator"), number(2, 1)), p(r("Gate"), number(2)),
    p(r("seal"), number(3)), p(r("HIDDEN WORDS", "<w:vanish/>") + r("shown words")),
    "<w:tbl><w:tr>" + cell(p(r("part"))) + cell(p(r("detail"))) + "</w:tr><w:tr>" + cell(p(r("motor"))) +
    cell(nested + p(r("after"))) + "</w:tr></w:tbl>",
    p(r("Care"), style("H1")),
    p("<w:r><mc:AlternateContent><mc:Choice><w:txbxContent>" + p(r("Box text.")) + "</w:txbxContent></mc:Choice><mc:Fallback>" +
      "<w:txbxContent>" + p(r("Box text.")) + "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>" + r("Grease twice a year.")),
    p('<w:r><w:drawing><dgm:relIds xmlns:dgm="d" r:dm="rId4"/></w:drawing></w:r>' + r("A drawing.")),
    '<w:altChunk r:id="rId5"/>',
    p('<w:moveFrom w:id="3">' + r("MOVED WORDS") + "</w:moveFrom>" + r("End.")),
])
archive("docx/review.docx", {
    "[Content_Types].xml": "<Types/>",
    "word/document.xml": f'<w:document {W} {R} xmlns:mc="x"><w:body>{body}</w:body></w:document>',
    "word/_rels/document.xml.rels": rels(("rId1", "header", "header1.xml"), ("rId2", "header", "header2.xml"), ("rId3", "footer", "footer1.xml"),
                                         ("rId4", "diagramData", "diagrams/data1.xml"), ("rId5", "aFChunk", "/part.html")),
    "word/diagrams/data1.xml": '<d:dataModel xmlns:d="d" xmlns:a="a"><d:pt><a:p><a:r><a:t>Lift</a:t></a:r></a:p></d:pt><d:pt><a:p><a:r><a:t>Lower</a:t></a:r></a:p></d:pt></d:dataModel>',
    "part.html": "<html><body><p>From a page.</p></body></html>",
    "word/header1.xml": f"<w:hdr {W}>{p(r('Operations manual, page 1'))}</w:hdr>",
    "word/header2.xml": f"<w:hdr {W}>{p(r('Operations manual, page 2'))}</w:hdr>",
    "word/footer1.xml": f"<w:ftr {W}>{p(r('7'))}</w:ftr>",
    "word/comments.xml": f'<w:comments {W}><w:comment w:id="0">{p(r("COMMENT WORDS"))}</w:comment></w:comments>',
    "word/footnotes.xml": f'<w:footnotes {W}><w:footnote w:type="separator" w:id="0">{p(r("no"))}</w:footnote>'
                          f'<w:footnote w:id="2">{p(r("Measured in spring."))}</w:footnote></w:footnotes>',
    "word/styles.xml": f'<w:styles {W}><w:style w:styleId="Title"><w:name w:val="Title"/></w:style>'
                       '<w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
                       '<w:style w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>',
    "word/numbering.xml": f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">'
                          '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1"/></w:lvl>'
                          '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>'
                          '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/></w:lvl>'
                          '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%2)"/></w:lvl></w:abstractNum>'
                          '<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>'
                          '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
                          '<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num></w:numbering>',
})

# --- pptx
P = f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" {R}'


def shape(paragraphs, holder=None, at=None):
    ph = f"<p:nvPr><p:ph {holder}/></p:nvPr>" if holder is not None else "<p:nvPr/>"
    xfrm = f'<a:xfrm><a:off x="{at[0]}" y="{at[1]}"/><a:ext cx="{at[2]}" cy="{at[3]}"/></a:xfrm>' if at else ""
    return (f"<p:sp><p:nvSpPr>{ph}</p:nvSpPr><p:spPr>{xfrm}</p:spPr><p:txBody>" + "".join(
        f'<a:p><a:pPr lvl="{level}">{bullet}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>' for level, bullet, text in paragraphs) + "</p:txBody></p:sp>")


line = lambda text, level=0, bullet="": (level, bullet, text)
tc = lambda text, props="": f"<a:tc {props}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"
table = ("<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr>" + tc("gate", 'gridSpan="2"') + tc("", 'hMerge="1"') + tc("state") + "</a:tr><a:tr>" +
         tc("north", 'rowSpan="2"') + tc("left") + tc("open") + "</a:tr><a:tr>" + tc("", 'vMerge="1"') + tc("right") + tc("shut") +
         "</a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>")
slide = lambda inner: f"<p:sld {P}><p:cSld><p:spTree>{inner}</p:spTree></p:cSld></p:sld>"
footer = shape([line("Water board")], 'type="ftr" idx="11"') + shape([line("4")], 'type="sldNum" idx="12"')
archive("pptx/deck.pptx", {
    "[Content_Types].xml": "<Types/>",
    "docProps/core.xml": CORE % "Gates in winter",
    "ppt/presentation.xml": f'<p:presentation {P}><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": rels(("rId1", "slide", "slides/slide1.xml"), ("rId2", "slide", "/ppt/slides/slide2.xml")),
    "ppt/slides/slide2.xml": slide(shape([line("Ice forms first at the north gate."), line("Check it daily.", 1)], 'idx="1"') +
                                   shape([line("Why gates freeze")], 'type="title"') + table + footer),
    "ppt/slides/_rels/slide2.xml.rels": rels(("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")),
    "ppt/notesSlides/notesSlide1.xml": f"<p:notes {P}><p:cSld><p:spTree>" + shape([line("Tell the story of the frozen winch.")], 'type="body" idx="1"') +
                                       shape([line("2")], 'type="sldNum" idx="5"') + "</p:spTree></p:cSld></p:notes>",
    "ppt/slides/slide1.xml": slide(
        shape([line("right column")], None, (5000, 1000, 3000, 5000)) + shape([line("left below")], None, (100, 4000, 3000, 1500)) +
        shape([line("left above")], None, (100, 1000, 3000, 1500)) + shape([line("one", 0, '<a:buChar char="x"/>'), line("two", 0, '<a:buChar char="x"/>')], None, (100, 7000, 8000, 900)) +
        shape([line("Layout")], 'type="title"', (100, 100, 8000, 500)) + footer),
})

# --- xlsx
S = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" {R}'
sheet = lambda rows: f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>"
row = lambda n, cells: f'<row r="{n}">{cells}</row>'
c = lambda ref, value, kind="", s=0: f'<c r="{ref}" t="{kind}" s="{s}"><v>{value}</v></c>' if kind else f'<c r="{ref}" s="{s}"><v>{value}</v></c>'
shared = ["Stock of the depot", "part", "bought", "share", "price", "sum", "belt", "seal", "shown as text", "kilometres"]
rows = (row(1, c("A1", 0, "s")) + row(2, c("A2", 1, "s") + c("B2", 2, "s") + c("C2", 3, "s") + c("D2", 4, "s") + c("E2", 5, "s")) +
        row(3, c("A3", 6, "s") + c("B3", 45366, s=1) + c("C3", 0.125, s=2) + c("D3", 1234.5, s=3) + '<c r="E3" s="3"><f>D3*2</f><v>2469</v></c>') +
        row(4, c("A4", 7, "s") + c("B4", 45366.75, s=4) + c("D4", -3, s=3) + '<c r="E4"><f>D4*2</f></c>') +
        row(7, c("B7", 9, "s") + c("C7", 12.5, s=5)) + row(8, c("B8", "TRUE text", "str") + c("C8", 1, "b") + '<c r="D8" t="inlineStr"><is><t>inline</t></is></c>'))
archive("xlsx/stock.xlsx", {
    "[Content_Types].xml": "<Types/>",
    "xl/workbook.xml": f'<workbook {S}><sheets><sheet name="Depot" sheetId="1" r:id="rId1"/><sheet name="Secret" sheetId="2" state="hidden" r:id="rId2"/>'
                       '<sheet name="Log" sheetId="3" r:id="rId3"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": rels(("rId1", "worksheet", "worksheets/sheet1.xml"), ("rId2", "worksheet", "worksheets/sheet2.xml"),
                                       ("rId3", "worksheet", "worksheets/sheet3.xml"), ("rId4", "sharedStrings", "sharedStrings.xml")),
    "xl/sharedStrings.xml": f"<sst {S}>" + "".join(f"<si><t>{t}</t></si>" for t in shared[:-1]) +
                            "<si><r><t>kilo</t></r><r><t>metres</t></r><rPh><t>READING</t></rPh></si></sst>",
    "xl/styles.xml": f'<styleSheet {S}><numFmts><numFmt numFmtId="164" formatCode="[$€-407] #,##0.00;[Red]-[$€-407] #,##0.00"/>'
                     '<numFmt numFmtId="165" formatCode="d mmmm yyyy h:mm AM/PM"/><numFmt numFmtId="166" formatCode="0.0&quot; km&quot;"/></numFmts>'
                     '<cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/>'
                     '<xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs></styleSheet>',
    "xl/worksheets/sheet1.xml": sheet(rows),
    "xl/worksheets/_rels/sheet1.xml.rels": rels(("rId1", "drawing", "../drawings/drawing1.xml")),
    "xl/drawings/drawing1.xml": '<x:wsDr xmlns:x="x" xmlns:a="a"><x:sp><a:p><a:r><a:t>Count again </a:t></a:r><a:r><a:t>in May</a:t></a:r></a:p></x:sp></x:wsDr>',
    "xl/drawings/_rels/drawing1.xml.rels": rels(("rId1", "chart", "../charts/chart1.xml")),
    "xl/charts/chart1.xml": '<c:chart xmlns:c="c"><c:ser><c:tx><c:strRef><c:strCache><c:pt><c:v>Stock by month</c:v></c:pt></c:strCache></c:strRef></c:tx>'
                            '<c:val><c:numRef><c:numCache><c:pt><c:v>12</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:chart>',
    "xl/worksheets/sheet2.xml": sheet(row(1, c("A1", "HIDDEN WORDS", "str"))),
    "xl/worksheets/sheet3.xml": sheet(row(1, c("A1", "day", "str") + c("B1", "level", "str")) + "".join(
        row(n, c(f"A{n}", 46000 + n, s=1) + c(f"B{n}", n / 4)) for n in range(2, 60) if n != 50)),
})

# --- OpenDocument
O = " ".join(f'xmlns:{k}="urn:oasis:names:tc:opendocument:xmlns:{v}:1.0"' for k, v in (
    ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("presentation", "presentation"), ("style", "style"), ("meta", "meta"), ("dc", "dc")))
content = lambda kind, inner, styles="": (f"<office:document-content {O}><office:automatic-styles>{styles}</office:automatic-styles><office:body>"
                                          f"<office:{kind}>{inner}</office:{kind}></office:body></office:document-content>")
meta = lambda title: f"<office:document-meta {O}><office:meta><dc:title>{title}</dc:title></office:meta></office:document-meta>"
MIME = "application/vnd.oasis.opendocument."
manifest = "<manifest:manifest xmlns:manifest='m'/>"
archive("odt/report.odt", {
    "mimetype": MIME + "text", "META-INF/manifest.xml": manifest, "meta.xml": meta("Autumn report"),
    "styles.xml": f'<office:document-styles {O}><office:styles><style:style style:name="Preformatted_20_Text"/></office:styles><office:master-styles>'
                  '<style:master-page><style:header><text:p>Report of the water board</text:p></style:header>'
                  '<style:footer><text:p>Page <text:page-number>1</text:page-number></text:p></style:footer></style:master-page></office:master-styles></office:document-styles>',
    "content.xml": content("text", """<text:tracked-changes><text:changed-region><text:deletion><text:p>DELETED WORDS</text:p></text:deletion></text:changed-region></text:tracked-changes>
<text:h text:outline-level="1">Levels</text:h>
<text:p>The level<text:s text:c="2"/>rose<office:annotation><text:p>COMMENT WORDS</text:p></office:annotation> by
  two metres.<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Measured at the gate.</text:p></text:note-body></text:note></text:p>
<text:list><text:list-item><text:p>first</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>second</text:p></text:list-item></text:list>
<text:h text:outline-level="2">By month</text:h>
<table:table table:name="T"><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>gate</text:p></table:table-cell><table:covered-table-cell/><table:table-cell><text:p>level</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>north</text:p></table:table-cell><table:table-cell><text:p>left</text:p></table:table-cell><table:table-cell><text:p>2</text:p></table:table-cell></table:table-row>
<table:table-row><table:covered-table-cell/><table:table-cell><text:p>right</text:p></table:table-cell><table:table-cell><text:p>3</text:p></table:table-cell></table:table-row></table:table>
<text:p text:style-name="P1">level := 2</text:p><text:p text:style-name="P1">  open(gate)</text:p>
<text:p><draw:frame><draw:text-box><text:p>In a box.</text:p></draw:text-box></draw:frame>Around it.</text:p>""",
                           '<style:style style:name="P1" style:parent-style-name="Preformatted_20_Text"/>'),
})
cells = lambda *texts: "".join(f"<table:table-cell><text:p>{t}</text:p></table:table-cell>" for t in texts)
archive("ods/levels.ods", {
    "mimetype": MIME + "spreadsheet", "META-INF/manifest.xml": manifest,
    "content.xml": content("spreadsheet", '<table:table table:name="Levels"><table:table-row>' + cells("day", "level", "rise") + "</table:table-row>"
                           '<table:table-row><table:table-cell office:value-type="date" office:date-value="2026-03-15"><text:p>15 March 2026</text:p></table:table-cell>'
                           '<table:table-cell table:number-columns-repeated="2" office:value="2.5"><text:p>2.50 m</text:p></table:table-cell>'
                           '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
                           '<table:table-row table:number-rows-repeated="2">' + cells("16 March 2026", "3.00 m") + '<table:table-cell office:value-type="float" office:value="0.5"/></table:table-row>'
                           '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>'
                           '<table:table table:name="Drafts" table:style-name="ta2"><table:table-row>' + cells("HIDDEN WORDS") + "</table:table-row></table:table>",
                           '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'),
})
frame = lambda inner, kind="": f'<draw:frame presentation:class="{kind}"><draw:text-box>{inner}</draw:text-box></draw:frame>'
para = lambda text: f"<text:p>{text}</text:p>"
archive("odp/talk.odp", {
    "mimetype": MIME + "presentation", "META-INF/manifest.xml": manifest,
    "content.xml": content("presentation",
                           "<draw:page>" + frame("<text:list><text:list-item>" + para("gates") + "</text:list-item><text:list-item>" + para("pumps") + "</text:list-item></text:list>", "outline") +
                           frame(para("Winter works"), "title") + frame(para("Water board"), "footer") + frame(para("1"), "page-number") +
                           "<presentation:notes><draw:page-thumbnail/>" + frame(para("Begin with the ice."), "notes") + "</presentation:notes></draw:page>"
                           "<draw:page>" + frame(para("Costs"), "title") + "<table:table><table:table-row>" + cells("gate", "cost") + "</table:table-row><table:table-row>" +
                           cells("north", "12") + "</table:table-row></table:table>" + frame(para("Water board"), "footer") + "</draw:page>"),
})

# --- epub
page = lambda title, inner: (f'<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title>'
                             f'<script src="x.js"/></head><body>{inner}</body></html>')
archive("epub/handbook.epub", {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    "OPS/book.opf": '<package xmlns:dc="d"><metadata><dc:title>Handbook of weirs</dc:title></metadata><manifest>'
                    '<item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/><item id="a" href="text/one%20a.xhtml"/>'
                    '<item id="b" href="text/two.xhtml"/><item id="c" href="text/three.xhtml"/><item id="gone" href="text/gone.xhtml"/></manifest>'
                    '<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/><itemref idref="gone"/></spine></package>',
    "OPS/nav.xhtml": page("Contents", '<nav xmlns:epub="e" epub:type="toc"><ol><li><a href="text/one%20a.xhtml">Water</a></li>'
                          '<li><a href="text/two.xhtml#gates">Gates</a><ol><li><a href="text/two.xhtml#iron">Iron gates</a></li></ol></li></ol></nav>'),
    "OPS/text/one a.xhtml": page("One", "<h1>Water</h1><p>It flows&#160;down.<a/></p>"),
    "OPS/text/two.xhtml": page("Two", '<p>Still water.</p><h1 id="gates">Gates</h1><p>They lift.</p><h2 id="iron">Iron</h2><p>It rusts.</p>'),
    "OPS/text/three.xhtml": page("Three", "<p>More of gates.</p>"),
})

# --- mail
b64 = lambda data: base64.encodebytes(data).decode()
put("eml/order.eml", "\r\n".join([
    "Return-Path: <a@example.org>", "From: =?utf-8?B?" + base64.b64encode("Ägir Werk".encode()).decode() + "?= <a@example.org>", "To: depot@example.org",
    "Subject: =?gb2312?B?" + base64.b64encode("水泵订单".encode("gb18030")).decode() + "?= for the depot", "Date: Mon, 02 Mar 2026 10:00:00 +0100",
    "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="outer"', "", "for old programs", "--outer",
    'Content-Type: multipart/alternative; boundary="inner"', "", "--inner", "Content-Type: text/plain; charset=iso-8859-1", "Content-Transfer-Encoding: quoted-printable", "",
    quopri.encodestring("Bitte zwölf Dichtungen schicken, und zwar recht bald und an die übliche Anschrift.\n\nGrüße".encode("latin-1")).decode().replace("\n", "\r\n"),
    "--inner", "Content-Type: text/html; charset=utf-8", "", "<p>Bitte zwölf Dichtungen schicken</p><script>bad()</script>", "--inner--", "",
    "--outer", 'Content-Type: application/octet-stream; name="x"', "Content-Transfer-Encoding: base64", "Content-Disposition: attachment; filename*=utf-8''Teile%20%E8%A1%A8.csv", "",
    b64("名称,数量\n水泵,12\n密封,7\n".encode("gb18030")),
    "--outer", 'Content-Type: message/rfc822', "", "From: b@example.org", "To: a@example.org", "Subject: The older one", "", "What was agreed before.",
    "--outer", 'Content-Type: image/png; name="logo.png"', "Content-Transfer-Encoding: base64", "", b64(b"\x89PNG\r\n\x1a\n1234"),
    "--outer", 'Content-Type: application/zip; name="all.zip"', "Content-Transfer-Encoding: base64", "", b64(b"PK\x05\x06" + bytes(18)),
    "--outer--", ""]))
put("mhtml/page.mhtml", "\r\n".join([
    "From: <Saved by Weir>", "Snapshot-Content-Location: http://example.org/", "Subject: Gates", "MIME-Version: 1.0",
    'Content-Type: multipart/related; type="text/html"; boundary="----x"', "", "------x", "Content-Type: text/html", "Content-Transfer-Encoding: quoted-printable",
    "Content-Location: http://example.org/", "", quopri.encodestring("<html><head><meta charset=utf-8><title>Gates of the weir</title></head><body><h1>Gates</h1><p>Sluices für all.</p></body></html>".encode()).decode(),
    "------x", "Content-Type: text/css", "", "p { color: red }", "------x--", ""]))

# --- text formats
put("rtf/letter.rtf", r"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Arial;}{\f1\fcharset134 SimSun;}{\f2\fcharset204 Arial CYR;}}
{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s2\outlinelevel1 Own heading;}}{\info{\title Letter of the board}{\author NOBODY}}
{\header\pard Water board\par}{\headerf\pard Water board\par}
\pard\s1 Gates\par\pard\plain Caf\'e9 and {\f1\'cb\'ae\'b1\'c3} and {\f2\'e2\'ee\'e4\'e0}, \u8364?5 \u-10179?\u-8691? {\deleted DELETED WORDS }{\v HIDDEN WORDS}\emdash end.{\footnote A note.}\par
{\*\unknown IGNORED}{\pict 0011}{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link text}}{\*\annotation COMMENT WORDS}\par
\pard\s2 Parts\par\pard{\listtext 1.\tab}\ls1 belt\par\pard{\listtext 2.\tab}\ls1\ilvl0 seal\par
\trowd\cellx100\cellx200\pard\intbl part\cell count\cell\row\trowd\pard\intbl belt\cell 12\cell\row\pard After the table.\par}
""")
put("xml/stations.xml", '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE s [<!ENTITY own "OWN">]>\n<stations>\n  <title>Stations</title>\n  <station id="N1">\n    <name>North</name>\n'
    '    <level unit="m">2.5</level>\n    <note>Ice on the <b>north</b> gate &amp; more &own;</note>\n  </station>\n  <station id="S1"><name>South</name></station>\n  <!-- COMMENT WORDS -->\n</stations>\n')
put("yaml/service.yaml", "# Settings of the service\ntitle: Weir\nserver:\n  port: 8080\n  hosts:\n  - a\n\n# who may\nusers:\n- anna\n---\nsecond: true\n")
put("log/pump.log", "2026-03-01 10:00:00 INFO pump started\n2026-03-01 10:00:05 ERROR no flow\n    at gate.go:12\n    at main.go:7\n2026-03-01 10:01:00 INFO stopped\n")
put("code/gate.go", 'package gate\n\nimport "fmt"\n\n// Open lifts the gate.\nfunc Open(n int) error {\n\tif n < 0 {\n\n\t\treturn fmt.Errorf("gate %d", n)\n\t}\n\treturn nil\n}\n\nfunc Shut() {}\n')
put("code/start", "#!/usr/bin/env python3\nprint('gate')\n")
put("ipynb/levels.ipynb", """{
 "metadata": {"kernelspec": {"language": "python"}},
 "nbformat": 4,
 "cells": [
  {
   "cell_type": "markdown",
   "source": ["# Levels\\n", "\\n", "Read the *file* first."]
  },
  {
   "cell_type": "code",
   "source": "levels = read('levels.csv')\\nlevels.mean()",
   "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2.75"], "image/png": "iVBORw0K"}}]
  },
  {"cell_type": "raw", "source": "Raw words."}
 ]
}
""")
