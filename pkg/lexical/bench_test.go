package lexical

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The samples of the benchmarks are about as long as a chunk and vary in their words from one call to the
// next, as documents do.
const (
	benchEnglish = "Message brokers decouple the services that publish events from those that consume them. " +
		"Each consumer keeps its own position, so a slow reader never blocks a fast one, and a message that " +
		"wasn't acknowledged within the wait time is delivered again. In practice that means every handler has " +
		"to be idempotent: the same document may arrive twice, or an older version after a newer one. The " +
		"indexer's transaction therefore compares versions (e.g. v1.27.3-rc.1) before it replaces any rows, " +
		"and readers see either the whole old document or the whole new one. Throughput depends on batch size, " +
		"network latency and fsync behaviour; measured with 4,096-byte records the cluster reached 250 MB/s. "
	benchChinese = "消息代理把发布事件的服务与消费事件的服务解耦。每个消费者维护自己的位置，因此缓慢的读取者不会阻塞快速的读取者，" +
		"在等待时间内未被确认的消息会再次投递。在實踐中，這意味著每個處理程序都必須是冪等的：同一文檔可能到達兩次，" +
		"或者旧版本在新版本之后到达。索引器的事务在替换任何行之前会比较版本（例如 v1.27.3），读者看到的要么是完整的旧文档，" +
		"要么是完整的新文档。吞吐量取决于批量大小、网络延迟和 fsync 行为。"
	benchOthers = "Jeder Verbraucher führt seine eigene Position, daher hält ein langsamer Leser einen schnellen nie auf. " +
		"Каждый потребитель хранит свою позицию, поэтому медленный читатель никогда не задерживает быстрого. " +
		"Cada consumidor guarda su propia posición; así un lector lento nunca detiene a otro más rápido. " +
		"يحتفظ كل مستهلك بموضعه الخاص، لذلك لا يعطل القارئ البطيء القارئ السريع أبدا. "
)

func benchTexts(sample string) []string {
	texts := make([]string, 64)
	for i := range texts {
		// Another order of the sentences, and a few words of its own.
		cut := i * len(sample) / len(texts)
		for cut > 0 && sample[cut-1] != ' ' && sample[cut]&0xC0 == 0x80 {
			cut--
		}
		texts[i] = strings.Repeat(sample[cut:]+sample[:cut], 2) + " run" + strings.Repeat("x", i)
	}
	return texts
}

// manyWords returns texts of 180 words each, of 40,000 words whose frequencies fall as those of a language do.
func manyWords(n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 4, 40_000)
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 180 {
			b.WriteByte('w')
			for k := zipf.Uint64() + 26; k > 0; k /= 26 {
				b.WriteByte(byte('a' + k%26))
			}
			b.WriteByte(' ')
		}
		texts[i] = b.String()
	}
	return texts
}

func BenchmarkDocument(b *testing.B) {
	for _, c := range []struct {
		name  string
		texts []string
	}{
		{"english", benchTexts(benchEnglish)},
		{"chinese", benchTexts(benchChinese)},
		{"mixed", benchTexts(benchEnglish + benchChinese + benchOthers)},
		{"manywords", manyWords(2000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := lex1(b)
			bytes, tokens := 0, 0
			for _, text := range c.texts {
				bytes += len(text)
				tokens += a.Document("Brokers and delivery", text).Length
			}
			b.SetBytes(int64(bytes / len(c.texts)))
			b.ReportAllocs()
			var d Document
			for i := 0; b.Loop(); i++ {
				a.Fill(&d, "Brokers and delivery", c.texts[i%len(c.texts)])
			}
			perDocument := float64(tokens) / float64(len(c.texts))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/perDocument, "ns/token")
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	a := lex1(b)
	b.ReportAllocs()
	for b.Loop() {
		a.Query("how does the indexer's transaction replace rows in v1.27.3?")
	}
}
