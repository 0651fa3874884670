package retriever_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/pkg/testkit"
)

// requests is how many random requests TestRandomRequests makes; WEIR_RANDOM_REQUESTS asks for more.
const randomRequests = 10_000

// vandal makes requests, most of them a little or altogether wrong.
type vandal struct {
	*rand.Rand
	spoil int // of a thousand values
}

func pick[T any](v vandal, from ...T) T { return from[v.IntN(len(from))] }

// value is any JSON value, mostly small.
func (v vandal) value(depth int) string {
	switch v.IntN(14) {
	case 0:
		return "null"
	case 1:
		return pick(v, "true", "false")
	case 2:
		return strconv.Itoa(v.IntN(2000) - 500)
	case 3:
		return pick(v, "1e999", "-1e400", "9007199254740993", "1e-320", strings.Repeat("9", 1+v.IntN(3000)), "0.1e+0000000000001", "-0", "1E5")
	case 4:
		return strconv.Quote(pick(v, "", "pump", "DENSE_VECTOR", "FULL_TEXT", "WEIGHT", "RRF", "MODEL", "TEXT", "\u0000", "水泵", "tablestore", "simple", "document"))
	case 5:
		return `"` + pick(v, `\ud800`, `\u0000`, `\x`, "\xff\xfe", `\"`, `\\`, strings.Repeat("pump ", v.IntN(3000))) + `"`
	case 6:
		n := v.IntN(200)
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	case 7:
		n := v.IntN(200)
		return strings.Repeat(`{"filter":`, n) + "1" + strings.Repeat("}", n)
	case 8:
		return fmt.Sprintf("[%s]", strings.TrimSuffix(strings.Repeat("0.5,", v.IntN(40)), ","))
	case 9:
		return pick(v, "NaN", "Infinity", "+1", "01", "'x'", "undefined", "", "{", "]", ",")
	case 10:
		if depth > 3 {
			return "1"
		}
		return "[" + v.value(depth+1) + "," + v.value(depth+1) + "]"
	default:
		if depth > 3 {
			return "{}"
		}
		return fmt.Sprintf("{%q:%s}", pick(v, "type", "text", "key", "numberOfResults", "x"), v.value(depth+1))
	}
}

// leaf is mostly the first value, which is right, else another one that might be, or any.
func (v vandal) leaf(fitting ...string) string {
	switch n := v.IntN(1000); {
	case n < v.spoil:
		return v.value(0)
	case n < 5*v.spoil:
		return pick(v, fitting...)
	}
	return fitting[0]
}

// object holds some of the keys.
func (v vandal) object(fields ...string) string {
	var out []string
	for i := 0; i < len(fields); i += 2 {
		if v.IntN(3) > 0 {
			out = append(out, strconv.Quote(fields[i])+":"+fields[i+1])
		}
	}
	if v.IntN(2000) < v.spoil {
		out = append(out, strconv.Quote(pick(v, "filter", "unknown", "", "SearchType"))+":"+v.value(0))
	}
	if v.IntN(2000) < v.spoil && len(out) > 0 {
		out = append(out, out[0])
	}
	v.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return "{" + strings.Join(out, ",") + "}"
}

func (v vandal) count() string {
	return v.leaf("5", "0", "1", "20", "1000", "1001", "-1", "1.5", "2e1")
}

func (v vandal) weight() string {
	return v.leaf("0.3", "0", "1", "-1", "1e308", "1e39")
}

func (v vandal) retrieve() string {
	text := v.leaf(pick(v, `"pump seal1"`, `"水泵"`, `"+pump -seal1"`, `"\"pump number1\" xx*"`, `"pu*"`, `"the"`), `""`)
	vector := v.leaf(`[1,0,0,0,0,0,0,0]`, `[0,0,0,0,0,0,0,0]`, `[1]`, `[1e39,0,0,0,0,0,0,0]`)
	query := fmt.Sprintf(`{"type":%s,"text":%s}`, v.leaf(`"TEXT"`, `"TEXT"`, `"IMAGE"`), text)
	if v.IntN(6) == 0 {
		query = fmt.Sprintf(`{"type":"TEXT","vector":%s}`, vector)
	}
	rerank := v.object("type", v.leaf(pick(v, `"WEIGHT"`, `"RRF"`, `"MODEL"`), `"SUM"`), "numberOfResults", v.count(),
		"modelConfiguration", v.leaf(v.object("provider", v.leaf(`"local"`, `"bailian"`), "model", v.leaf(`"large"`, `"huge"`))),
		"weightConfiguration", v.leaf(v.object("denseVectorSearchWeight", v.weight(), "fullTextSearchWeight", v.weight())),
		"rrfConfiguration", v.leaf(v.object("denseVectorSearchWeight", v.weight(), "fullTextSearchWeight", v.weight(), "k", v.leaf("60", "0", "1e2", "1.5"))))
	conf := v.object(
		"searchType", v.leaf(pick(v, `["DENSE_VECTOR"]`, `["FULL_TEXT"]`, `["FULL_TEXT","DENSE_VECTOR"]`), "[]"),
		"denseVectorSearchConfiguration", v.leaf(v.object("numberOfResults", v.count(), "fallbackToFullText", v.leaf("true", "false"))),
		"fullTextSearchConfiguration", v.leaf(v.object("numberOfResults", v.count(), "syntax", v.leaf(pick(v, `"plain"`, `"simple"`)), "k1", v.weight(), "b", v.weight())),
		"rerankingConfiguration", v.leaf(rerank), "scoreThreshold", v.leaf("null", "0.5", "2"), "limits", v.leaf(`""`, `"tablestore"`),
		"outputConfiguration", v.leaf(v.object("fields", v.leaf(`["of"]`, `["owner"]`, "[]"), "vector", v.leaf("true"), "content", v.leaf("false"))))
	if v.IntN(3) == 0 {
		conf = strings.Replace(`{`+v.filters()+`,`+conf[1:], ",}", "}", 1)
		if v.IntN(2) == 0 {
			query = v.leaf(`{"type":"FILTER"}`, `{"type":"FILTER","text":"pump"}`)
		}
	}
	body := fmt.Sprintf(`{"retrievalQuery":%s,"retrievalConfiguration":%s,`, query, conf) + v.object(
		"explain", v.leaf("true"), "highlight", v.leaf("true"), "allowPartial", v.leaf("true"), "subspace", v.leaf(`["_default"]`, `["x"]`),
		"groupBy", v.leaf(v.object("type", `"document"`, "chunksPerGroup", v.count())), "knowledgeBaseName", v.leaf(`"docs"`, `"x"`))[1:]
	if v.IntN(1000) < v.spoil {
		body = strings.TrimSuffix(body, "}") + `,"cursor":` + v.leaf(`"AQID"`, `"x"`, `""`) + "}"
	}
	return strings.Replace(body, ",}", "}", 1)
}

// filters is a filter, as JSON or as an expression.
func (v vandal) filters() string {
	if v.IntN(2) == 0 {
		return `"filterExpression":` + v.leaf(pick(v, `"of = 'd01'"`, `"NOT (of IN ('d02', 'd03') OR of IS NULL)"`),
			`"owner = 'x'"`, `"of >"`, `"nothing = 1"`, strconv.Quote(strings.Repeat("(", v.IntN(3000))), strconv.Quote(strings.Repeat("NOT ", v.IntN(900))+"of = 'd01'"))
	}
	n := v.IntN(40)
	return `"filter":` + v.leaf(`{"notAll":[{"equals":{"key":"of","value":"d01"}},{"isNull":{"key":"of"}}]}`,
		`{"equals":{"key":"owner","value":"x"}}`, `{"in":{"key":"of","value":[]}}`, `{"lessThan":{"key":"of","value":1}}`, `{"andAll":[]}`,
		strings.Repeat(`{"orAll":[`, n)+`{"isNotNull":{"key":"of"}}`+strings.Repeat(`]}`, n))
}

// request is a subject's last tokens and a body.
func (v vandal) request() (scope, op string, body []byte) {
	v.spoil = pick(v, 0, 10, 50, 150)
	if scope = "docs"; v.IntN(250) < v.spoil {
		scope = pick(v, "_", "_all", "nowhere", "UPPER")
	}
	op = pick(v, messages.OpRetrieve, messages.OpRetrieve, messages.OpRetrieve, messages.OpSearch, messages.OpBatch, messages.OpDocGet, messages.OpDocList, messages.OpDocChunks, messages.OpKBGet)
	text := v.retrieve()
	switch op {
	case messages.OpBatch:
		queries := make([]string, v.IntN(6))
		for i := range queries {
			queries[i] = v.retrieve()
		}
		text = `{"queries":[` + strings.Join(queries, ",") + `]}`
	case messages.OpDocGet, messages.OpDocList, messages.OpDocChunks, messages.OpKBGet:
		text = v.object("docId", v.leaf(`"d00"`, `"x"`), "subspace", v.leaf(`"_default"`, `["_default"]`), "maxResults", v.count(), "nextToken", v.leaf(`"x"`, `"WyIxIl0"`))
	}
	if op == messages.OpRetrieve && v.IntN(5) == 0 {
		scope = messages.AllScope
		text = fmt.Sprintf(`{"knowledgeBaseNames":%s,"subspaces":%s,`, v.leaf(pick(v, `["docs","more"]`, `["docs"]`, `[]`), `["docs","docs"]`, `["nowhere"]`),
			v.leaf(`{}`, `{"docs":["x"]}`, `{"more":["_default"]}`)) + text[1:]
	}
	body = []byte(text)
	if v.spoil == 0 {
		return scope, op, body
	}
	switch v.IntN(8) {
	case 0: // broken
		body = body[:v.IntN(len(body)+1)]
	case 1:
		for range 1 + v.IntN(3) {
			body[v.IntN(len(body))] = byte(v.IntN(256))
		}
	case 2:
		body = []byte(v.value(0))
	case 3:
		if v.IntN(20) == 0 {
			body = append(body, strings.Repeat(pick(v, " ", "[", "\xff"), 200_000)...)
		}
	}
	return scope, op, body
}

// Whatever is asked, the reply is a success or an error that says what is wrong; it leaves nothing
// behind.
func TestRandomRequests(t *testing.T) {
	n := randomRequests
	if s := os.Getenv("WEIR_RANDOM_REQUESTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t, setup{cfg: newJudge(t).providers(nil)})
	l.fill(l.kb("docs", nil), 30)
	l.fill(l.kb("more", func(n *pgstore.NewKB) { n.IndexType, n.Generation.Space = messages.IndexTypeBM25, nil }), 10)
	v := vandal{Rand: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a fixed seed
	var heap [2]uint64
	var slowest time.Duration
	counts := map[messages.Code]int{}
	for i := range n {
		scope, op, body := v.request()
		began := time.Now()
		reply, err := l.nc.Request(messages.RPCSubject("acme", scope, op), body, testkit.Patience)
		took := time.Since(began)
		slowest = max(slowest, took)
		if err != nil {
			t.Fatalf("%s of %s: %v\n%.2000s", op, scope, err, body)
		}
		var env messages.Envelope
		if err := json.Unmarshal(reply.Data, &env); err != nil || env.Code == "" || env.Code == messages.CodeInternal || env.Code != messages.CodeSuccess && env.Message == "" {
			t.Errorf("%s of %s took %s: %.300s (%v)\n%.2000s", op, scope, took, reply.Data, err, body)
		}
		counts[env.Code]++
		if i == n/4 {
			heap[0] = heapInUse()
		}
	}
	heap[1] = heapInUse()
	t.Logf("%d requests, slowest %s, heap %d KiB after a quarter, %d KiB at the end: %v", n, slowest, heap[0]>>10, heap[1]>>10, counts)
	if heap[1] > heap[0]+16<<20 {
		t.Errorf("the heap grew from %d to %d KiB", heap[0]>>10, heap[1]>>10)
	}
	if counts[messages.CodeSuccess] < n/20 || counts[messages.CodeValidation] < n/4 {
		t.Errorf("the mix tests little: %v", counts)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold outlives the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
