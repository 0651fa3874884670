"""Writes the PDF and DOCX files of examples/ from the texts below.

Run by hand when a text changes: python3 examples.py OUT_DIR FONT.ttf
It needs reportlab 5.1.0 and a TrueType font with Chinese glyphs; the files in the repository were
made with Droid Sans Fallback (Apache-2.0), of which they embed the glyphs they use.
"""
import pathlib
import re
import sys
import zipfile
from xml.sax.saxutils import escape

from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

OUT = pathlib.Path(sys.argv[1])
pdfmetrics.registerFont(TTFont("Wide", sys.argv[2]))


def latin(text, font):
    """The wide font has no Latin letters: those of a Chinese text are set in Helvetica."""
    return re.sub(r"[A-Za-z0-9-]+", r'<font name="Helvetica">\g<0></font>', text) if font == "Wide" else text


def write_pdf(name, title, font, bold, pages, wrap):
    def style(size, before):
        return ParagraphStyle(
            "s", fontName=bold if size > 10 else font, fontSize=size, leading=size * 1.4,
            spaceBefore=before, spaceAfter=8, wordWrap=wrap)
    story = []
    for number, page in enumerate(pages):
        if number:
            story.append(PageBreak())
        for kind, text in page:
            size, before = {"h1": (20, 0), "h2": (14, 12), "p": (10, 0)}[kind]
            story.append(Paragraph(latin(escape(text), font), style(size, before)))
    SimpleDocTemplate(
        str(OUT / name), pagesize=A5, title=title, author="", creator="", producer="examples.py", invariant=1,
        leftMargin=48, rightMargin=48, topMargin=48, bottomMargin=48).build(story)


ESPRESSO = [
    [
        ("h1", "Espresso Machine Handbook"),
        ("p", "This handbook is for a small machine with one boiler, a vibration pump and a display of four "
              "characters. It tells how to make coffee, how to keep the machine clean and what the codes on the "
              "display mean."),
        ("h2", "First use"),
        ("p", "Rinse the water tank, fill it with fresh cold water to the upper mark and put it back until it clicks. "
              "Open the steam valve, switch the machine on and wait until water runs from the steam pipe without "
              "spitting. Close the valve. The machine is ready when the lamp stops blinking, after about six minutes."),
        ("h2", "Making an espresso"),
        ("p", "Grind 16 to 18 grams for a double basket. Level the coffee and press it down once, straight, with "
              "about fifteen kilograms. A good shot gives 36 grams of coffee in 25 to 30 seconds. If it runs faster, "
              "grind finer; if it drips, grind coarser. Change one thing at a time."),
    ],
    [
        ("h1", "Care"),
        ("h2", "Every day"),
        ("p", "Empty the drip tray, wipe the steam pipe with a damp cloth straight after use and let a cup of water "
              "run through the empty group. Milk that dries inside the pipe cannot be removed later."),
        ("h2", "Descaling"),
        ("p", "Descale every two months with hard water and every six months with soft water. Dissolve 30 grams of "
              "citric acid in one litre of lukewarm water, let a third of it run through the group, wait ten minutes "
              "and repeat twice. Rinse with two full tanks. Never use vinegar: it attacks the seals."),
        ("h2", "Changing the group seal"),
        ("p", "When water runs down beside the holder, the seal is worn. Order part GSK-0581-R, let the machine cool, "
              "lift the old ring out with a blunt hook and press the new one in with the flat side up."),
    ],
    [
        ("h1", "Codes on the display"),
        ("h2", "E-4217: no flow"),
        ("p", "The pump ran for ten seconds and the flow meter did not turn. Usually the tank is empty or not clicked "
              "in, or air is trapped after the tank ran dry. Fill the tank, open the steam valve and let the pump run "
              "until water comes without bubbles. If the code stays, clean the inlet filter."),
        ("h2", "E-4302: boiler too hot"),
        ("p", "The boiler went over 145 degrees and the thermostat cut the power. Let the machine cool for thirty "
              "minutes. If the code comes back at once, the temperature sensor is broken and the machine must not be "
              "used."),
        ("h2", "E-4410: descale now"),
        ("p", "The heating-up time has doubled since the last descaling. The machine still works but refuses to start "
              "after twenty more cups. Descale it; the counter is set back by itself when two tanks have run through."),
    ],
]

BRAKES = [
    [
        ("h1", "自行车刹车保养手册"),
        ("p", "本手册介绍碟刹和圈刹的日常检查、调整方法以及常见故障的处理。所有操作都可以用普通工具在家完成。"
              "如果不确定零件是否完好，请先不要骑行。"),
        ("h2", "骑行前的检查"),
        ("p", "捏住刹车把，车轮应当立即停住，刹车把与车把之间至少要留出两指宽的距离。"
              "松开刹车把后，车轮应当能自由转动，没有摩擦声。检查刹车线有没有断丝，油管接头有没有漏油。"),
        ("h2", "更换来令片"),
        ("p", "来令片的厚度小于一毫米时必须更换。本手册所用的来令片编号为 BRK-2093-X。"
              "拆下车轮，拔出固定销，取出旧片，用推片器把活塞推回原位，再装入新片。"
              "新片需要磨合：以每小时二十公里的速度骑行，平稳刹车三十次。"),
    ],
    [
        ("h1", "油压碟刹"),
        ("h2", "排气"),
        ("p", "刹车把捏起来发软、行程变长，说明油路中有空气。在卡钳一端接上装有刹车油的针筒，"
              "在刹车把一端接上空的漏斗，缓慢推动针筒，直到漏斗里不再出现气泡。"
              "矿物油和 DOT 油不能混用，用错会损坏密封圈。"),
        ("h2", "刹车异响"),
        ("p", "尖锐的响声多半是碟片沾了油。用酒精清洁碟片，用细砂纸轻轻打磨来令片表面。"
              "如果来令片已经被油浸透，只能更换，清洗是没有用的。"),
        ("h2", "拧紧力矩"),
        ("p", "碟片螺丝的力矩为六牛米，卡钳螺丝为八牛米。超过规定的力矩会使螺纹滑牙。"),
    ],
    [
        ("h1", "常见问题"),
        ("h2", "雨天刹车变弱怎么办"),
        ("p", "雨水会在碟片和来令片之间形成水膜。提前轻捏刹车把，让碟片先擦干，再逐渐加力。"
              "雨天的刹车距离大约是晴天的两倍。"),
        ("h2", "多久换一次刹车油"),
        ("p", "DOT 油会吸收空气中的水分，建议每年更换一次。矿物油可以使用两年，颜色发黑时应提前更换。"),
    ],
]

IRRIGATION = [
    ("title", "Watering a Small Garden by Drip Line"),
    ("p", "A drip line brings water to the roots and nowhere else. This guide plans a line for beds of up to forty "
          "square metres, fed from a tap or a rain barrel."),
    ("h1", "Planning"),
    ("p", "Draw the beds to scale and mark every plant. A barrel that stands one metre high gives a tenth of a bar: "
          "enough for twenty metres of line, not more. From a tap, a pressure reducer set to one bar is needed."),
    ("h2", "How much water"),
    ("table", [["Plant", "Litres a day", "Emitters"], ["Tomato", "2.0", "2"], ["Cucumber", "2.5", "2"],
               ["Lettuce", "0.4", "1"], ["Strawberry", "0.5", "1"], ["Raspberry", "1.5", "1"]]),
    ("p", "The figures are for a warm week without rain. Halve them in spring."),
    ("h1", "Building"),
    ("li", "Lay the main pipe along the long side of the beds and let it lie in the sun for an hour: it gets soft."),
    ("li", "Punch a hole for each branch with the hole punch HP-0032, never with a nail."),
    ("li", "Push the emitters in until they click, and flush the line before you close its end."),
    ("h1", "Faults"),
    ("h2", "The last plants stay dry"),
    ("p", "The line is too long or a branch leaks. Close the branches one after the other and watch the last emitter. "
          "With a barrel, raise it by half a metre before anything else."),
    ("h2", "Timer shows W-118"),
    ("p", "The timer could not close its valve because sand is in the seat. Take the valve apart, rinse it and put the "
          "filter cup back in. Without the filter the code W-118 returns within days."),
]


def write_docx(name, title, body):
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

    def para(text, style=""):
        props = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f'<w:p>{props}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'

    def table(rows):
        cells = "".join("<w:tr>" + "".join(f"<w:tc>{para(c)}</w:tc>" for c in row) + "</w:tr>" for row in rows)
        return f"<w:tbl>{cells}</w:tbl>"

    style = {"title": "Title", "h1": "Heading1", "h2": "Heading2", "li": "ListBullet", "p": ""}
    parts = [table(text) if kind == "table" else para(text, style[kind]) for kind, text in body]
    names = {"Title": "Title", "Heading1": "heading 1", "Heading2": "heading 2", "ListBullet": "List Bullet"}
    levels = {"Heading1": 0, "Heading2": 1}
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{i}"><w:name w:val="{n}"/><w:pPr>'
        + (f'<w:outlineLvl w:val="{levels[i]}"/>' if i in levels else "") + "</w:pPr></w:style>"
        for i, n in names.items())
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml."
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    package = "http://schemas.openxmlformats.org/package/2006/"
    files = {
        "[Content_Types].xml": f'{head}<Types xmlns="{package}content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kind}styles+xml"/>'
        '<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        "</Types>",
        "_rels/.rels": f'{head}<Relationships xmlns="{package}relationships">'
        f'<Relationship Id="r1" Type="{rel}officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="r2" Type="{package}relationships/metadata/core-properties" Target="docProps/core.xml"/>'
        "</Relationships>",
        "word/_rels/document.xml.rels": f'{head}<Relationships xmlns="{package}relationships">'
        f'<Relationship Id="r1" Type="{rel}styles" Target="styles.xml"/></Relationships>',
        "word/styles.xml": f"{head}<w:styles {w}>{styles}</w:styles>",
        "word/document.xml": f"{head}<w:document {w}><w:body>{''.join(parts)}</w:body></w:document>",
        "docProps/core.xml": f'{head}<cp:coreProperties xmlns:cp="{package}metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></cp:coreProperties>',
    }
    with zipfile.ZipFile(OUT / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


write_pdf("espresso-machine-handbook.pdf", "Espresso Machine Handbook", "Helvetica", "Helvetica-Bold", ESPRESSO, None)
write_pdf("bicycle-brakes-zh.pdf", "自行车刹车保养手册", "Wide", "Wide", BRAKES, "CJK")
write_docx("garden-drip-line.docx", "Watering a Small Garden by Drip Line", IRRIGATION)
