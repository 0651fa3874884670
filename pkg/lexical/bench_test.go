package lexical

import (
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

func BenchmarkDocument(b *testing.B) {
	for name, sample := range map[string]string{"english": benchEnglish, "chinese": benchChinese} {
		b.Run(name, func(b *testing.B) {
			a := lex1(b)
			texts := benchTexts(sample)
			bytes := 0
			for _, text := range texts {
				bytes += len(text)
			}
			b.SetBytes(int64(bytes / len(texts)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a.Document("Brokers and delivery", texts[i%len(texts)])
			}
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
