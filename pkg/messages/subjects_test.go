package messages

import (
	"regexp"
	"strings"
	"testing"
)

func TestSubjects(t *testing.T) {
	for got, want := range map[string]string{
		SubmitSubject("acme", "manuals"):                        "weir.docs.submit.acme.manuals",
		DeleteSubject("acme", "manuals"):                        "weir.docs.delete.acme.manuals",
		RPCSubject("acme", "manuals", OpRetrieve):               "weir.rpc.acme.manuals.retrieve",
		RPCSubject("acme", TenantScope, OpKBList):               "weir.rpc.acme._.kb_list",
		RPCSubject("acme", AllScope, OpRetrieve):                "weir.rpc.acme._all.retrieve",
		EventSubject("acme", "manuals", "a-1", StatusReady):     "weir.events.acme.manuals.a-1.Ready",
		EventSubject("acme", "manuals", "", StatusFailed):       "weir.events.acme.manuals._.Failed",
		EventSubject("acme", "manuals", "_", StatusFailed):      "weir.events.acme.manuals." + DocToken("_") + ".Failed",
		EventSubject("acme", "manuals", "a.b c", StatusDeleted): "weir.events.acme.manuals." + DocToken("a.b c") + ".Deleted",
		DeadSubject(StageParse, "acme", "manuals"):              "weir.dlq.parse.acme.manuals",
		WorkSubject(StageEmbed, "acme", "manuals"):              "weir.work.embed.2.acme.manuals",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The hashes are those of Python's base64.b32encode(hashlib.sha256(id.encode()).digest()[:20]).
func TestDocToken(t *testing.T) {
	long := strings.Repeat("a", 64)
	for id, want := range map[string]string{
		"a": "a", "A_b-9": "A_b-9", "__": "__", long: long,
		"_":        "~2LRK35YXPN5IV7O3YEWRMNGPEPVBU4IC",
		"":         "~4OYMIQUY7QOBJGX36TEJS35ZEQT24QPE",
		"a b":      "~ZBUHUCFKLVXNEBCDFD5GU2L2XDUW3Q2C",
		"a.b":      "~FZZTNXEOXKD66RZN6VUMGVECVPZFOXOD",
		"~a":       "~RVLHT3EU4ZMODXRSQQATSPFKSCZVFTC3",
		"年报":       "~3UIENFIOHWBLHGX3EGOX5WNUDZXSJPXO",
		"😀.pdf":    "~UYKCHBV5ZMJ4KQLJX7QQDAZ3MIUETOMV",
		"é":        "~JKMVK7SAGPBVHHPC5NSUOIAXZLK7SVL7",
		long + "a": "~MNJWDRELXHVLCQMY45XKRK37DJAWQXLK",
	} {
		if got := DocToken(id); got != want {
			t.Errorf("DocToken(%.70q) = %s, want %s", id, got, want)
		}
	}
}

func TestDocTokensAreTokensAndDiffer(t *testing.T) {
	token := regexp.MustCompile(`^[A-Za-z0-9_~-]{1,64}$`)
	seen := map[string]string{}
	for _, id := range []string{
		"a", "A", "_", "__", "~", "~a", " ", "  ", ".", "..", "*", ">", "a.b", "a b", "a\tb", "a\n", "\u00e9", "e\u0301", "年报", "😀", "$JS.API", "-", "\x01",
		strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("é", 256), DocToken("a b"),
	} {
		got := DocToken(id)
		if !token.MatchString(got) || got == NoDocument {
			t.Errorf("DocToken(%q) = %q is not a token of its own", id, got)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q share the token %s", id, other, got)
		}
		seen[got] = id
	}
}

func TestValidateName(t *testing.T) {
	for _, name := range []string{"a", "0", "-", "__", "_a", "_default", "a-b_c", strings.Repeat("a", 64)} {
		if err := ValidateName("kb", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "A", "a.b", "a b", "a*", "a>", "é", "a\n", "\na", "a\x00", TenantScope, AllScope, strings.Repeat("a", 65)} {
		wantField(t, name, ValidateName("kb", name), "kb")
	}
}

func TestParseScopeReadsEveryFamily(t *testing.T) {
	for _, subject := range []string{
		SubmitSubject("acme", "manuals"), DeleteSubject("acme", "manuals"), "weir.docs.submit.5.acme.manuals",
		RPCSubject("acme", "manuals", OpRetrieve), EventSubject("acme", "manuals", "a.b", StatusReady), EventSubject("acme", "manuals", "", StatusFailed),
		WorkSubject(StageParse, "acme", "manuals"), WorkSubject(StageIndex, "acme", "manuals"), DeadSubject(StageEmbed, "acme", "manuals"),
	} {
		tenant, kb, err := ParseScope(subject)
		if err != nil || tenant != "acme" || kb != "manuals" {
			t.Errorf("%s: got %q, %q, %v", subject, tenant, kb, err)
		}
	}
	for subject, want := range map[string]string{RPCSubject("acme", TenantScope, OpKBList): "_", RPCSubject("acme", AllScope, OpRetrieve): "_all"} {
		if tenant, scope, err := ParseScope(subject); err != nil || tenant != "acme" || scope != want {
			t.Errorf("%s: got %q, %q, %v", subject, tenant, scope, err)
		}
	}
}

func TestParseScopeRefusesOtherSubjects(t *testing.T) {
	for _, subject := range []string{
		"", ".", "weir", "weir.docs", "weir.docs.submit", "weir.docs.submit.acme", "weir.docs.submit.acme.", "weir.docs.submit..manuals",
		"weir.docs.submit.1.acme.manuals.more", "weir.rpc.acme", "weir.rpc..manuals.get", "weir.work.parse.1.acme", "weir.work.parse.1.acme.",
		"weir.dlq.parse.acme", "weir.internal.embed", SubjectEmbed + ".a.b", "other.docs.submit.acme.manuals", "$JS.API.INFO.acme.manuals", "WEIR.rpc.acme.manuals.get",
	} {
		tenant, kb, err := ParseScope(subject)
		if err == nil {
			t.Errorf("%q: got %q, %q", subject, tenant, kb)
			continue
		}
		wantField(t, subject, err, "subject")
	}
}

func TestLanesShareTheKnowledgeBases(t *testing.T) {
	var count [Lanes]int
	for i := range 800 {
		lane := Lane("tenant", "kb-"+string(rune('a'+i%26))+"-"+strings.Repeat("x", i/26))
		if lane < 0 || lane >= Lanes {
			t.Fatalf("lane %d", lane)
		}
		count[lane]++
	}
	for lane, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("lane %d has %d of 800 knowledge bases: %v", lane, n, count)
		}
	}
	for kb, want := range map[string]int{"manuals": 2, "b": 3, "": 3} {
		if got := Lane("acme", kb); got != want {
			t.Errorf("acme.%s moved from lane %d to %d: work under way would be stranded", kb, want, got)
		}
	}
}

func FuzzParseScope(f *testing.F) {
	f.Add(WorkSubject(StageParse, "acme", "manuals"))
	f.Add("weir.docs.submit..")
	f.Fuzz(func(t *testing.T, subject string) {
		tenant, kb, err := ParseScope(subject)
		if err == nil && (tenant == "" || kb == "" || !strings.Contains(subject, "."+tenant+"."+kb)) {
			t.Fatalf("%q: %q, %q", subject, tenant, kb)
		}
	})
}
