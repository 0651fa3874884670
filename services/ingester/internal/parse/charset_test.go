package parse_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/services/ingester/internal/parse"
)

const (
	chinese     = "水泵在春天检修。如果阀门漏水，先关闭电源，再通知值班人员，不要自己打开外壳。"
	traditional = "水泵在春天檢修。如果閥門漏水，先關閉電源，再通知值班人員，不要自己打開外殼。"
	japanese    = "ポンプは春に点検します。弁から水が漏れたときは、まず電源を切り、当番の人に知らせてください。"
	korean      = "펌프는 봄에 점검합니다. 밸브에서 물이 새면 먼저 전원을 끄고 당직자에게 알려 주십시오."
	russian     = "Насос проверяют весной. Если клапан течёт, сначала отключите питание и сообщите дежурному."
	french      = "La pompe est contrôlée au printemps. Si la vanne fuit, coupez d’abord l’électricité et prévenez l’équipe à côté."
	polish      = "Pompę sprawdza się na wiosnę. Jeśli zawór cieknie, najpierw wyłącz zasilanie i zawiadom dyżurnego, który jest obok. Źródło prądu."
	greek       = "Η αντλία ελέγχεται την άνοιξη. Αν η βαλβίδα έχει διαρροή, κλείστε πρώτα το ρεύμα και ειδοποιήστε τη βάρδια."
	turkish     = "Pompa ilkbaharda gözden geçirilir. Vana su sızdırırsa önce elektriği kesin ve nöbetçiye haber verin, kapağı açmayın."
	arabic      = "يتم فحص المضخة في الربيع. إذا تسرب الماء من الصمام فافصل الكهرباء أولا ثم أبلغ المناوب."
	thai        = "ตรวจเครื่องสูบน้ำในฤดูใบไม้ผลิ ถ้าวาล์วรั่วให้ปิดไฟก่อนแล้วแจ้งเจ้าหน้าที่เวร"
)

func encoded(t *testing.T, charset, text string) []byte {
	t.Helper()
	enc, err := htmlindex.Get(charset)
	if err != nil {
		t.Fatal(err)
	}
	data, err := enc.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", charset, err)
	}
	return data
}

func TestCharsetsAreRecognised(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ charset, text, name string }{
		{"gb18030", chinese, "GBK"},
		{"gb18030", chinese + "𠮷野家", "GB18030"},
		{"big5", traditional, "Big5"},
		{"shift_jis", japanese, "Shift_JIS"},
		{"euc-jp", japanese, "EUC-JP"},
		{"iso-2022-jp", japanese, "ISO-2022-JP"},
		{"euc-kr", korean, "EUC-KR"},
		{"utf-16le", chinese, "UTF-16LE"},
		{"utf-16be", japanese, "UTF-16BE"},
		{"utf-16le", "The pump hums.\r\nIt is spring.\r\n", "UTF-16LE"},
		{"utf-16be", russian, "UTF-16BE"},
		{"windows-1251", russian, "windows-1251"},
		{"koi8-r", russian, "KOI8-R"},
		{"ibm866", russian, "IBM866"},
		{"iso-8859-5", russian, "ISO-8859-5"},
		{"windows-1252", french, "windows-1252"},
		{"windows-1250", polish, "windows-1250"},
		{"iso-8859-2", polish, "ISO-8859-2"},
		{"windows-1253", greek, "windows-1253"},
		{"windows-1254", turkish, "windows-1254"},
		{"windows-1256", arabic, "windows-1256"},
		{"windows-874", thai, "windows-874"},
		{"utf-8", chinese, "UTF-8"},
	} {
		doc, err := parse.Parse(t.Context(), parse.Input{Data: encoded(t, test.charset, test.text)})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		want := strings.TrimSpace(strings.ReplaceAll(test.text, "\r", ""))
		if strings.TrimSpace(doc.Text) != want || doc.Charset != test.name {
			t.Errorf("%s: got %s %q, warnings %q", test.name, doc.Charset, doc.Text, doc.Warnings)
		}
	}
}

func TestBrokenCharactersAreNotTheEndOfAText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("The pump hums. ", 100)
	for name, test := range map[string]struct {
		data    string
		charset string
		holds   string
	}{
		"cut behind the first byte of a character": {chinese[:len(chinese)-2], "UTF-8", "不要自己打开外壳"},
		"one bad byte in a long text":              {long + "\xff" + long, "UTF-8", "hums. \ufffdThe"},
		"GBK cut inside a character":               {string(encoded(t, "gb18030", chinese))[:71], "GBK", "值班人员"},
	} {
		doc, err := parse.Parse(t.Context(), parse.Input{Data: []byte(test.data)})
		if err != nil || doc.Charset != test.charset || !strings.Contains(doc.Text, test.holds) {
			t.Errorf("%s: got %s %.200q, %v", name, doc.Charset, doc.Text, err)
		}
	}
}

func TestTheDeclaredCharsetCountsWhereItFits(t *testing.T) {
	t.Parallel()
	short := encoded(t, "big5", "水泵") // too short to be recognised
	doc, err := parse.Parse(t.Context(), parse.Input{Data: short, ContentType: "text/plain; charset=big5"})
	if err != nil || strings.TrimSpace(doc.Text) != "水泵" || doc.Charset != "Big5" || len(doc.Warnings) != 0 {
		t.Errorf("got %s %q, warnings %q, %v", doc.Charset, doc.Text, doc.Warnings, err)
	}
	doc, err = parse.Parse(t.Context(), parse.Input{Data: encoded(t, "euc-jp", japanese), ContentType: "text/plain; charset=utf-8"})
	if err != nil || strings.TrimSpace(doc.Text) != japanese || len(doc.Warnings) != 1 || !strings.Contains(doc.Warnings[0], "EUC-JP, not the declared charset") {
		t.Errorf("got %s %q, warnings %q, %v", doc.Charset, doc.Text, doc.Warnings, err)
	}
	_, err = parse.Parse(t.Context(), parse.Input{Data: []byte(strings.Repeat("\xa5", 4000))})
	if e, ok := messages.AsError(err); !ok || e.Code != messages.CodeInvalidEncoding {
		t.Errorf("one byte again and again: got %v", err)
	}
}
