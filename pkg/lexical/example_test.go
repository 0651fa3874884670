package lexical_test

import (
	"fmt"

	"github.com/weir-project/weir/pkg/lexical"
)

func ExampleAnalyzer_Document() {
	a, err := lexical.Lookup(lexical.Default)
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := a.Document("Running brokers", "The broker runs GPT-4o.")
	for _, l := range doc.Lexemes {
		fmt.Println(l.Term, l.TF())
	}
	fmt.Println("length", doc.Length)
	// Output:
	// 4o 1
	// broker 2
	// gpt 1
	// gpt-4o 1
	// run 2
	// the 1
	// length 7
}

func ExampleAnalyzer_Query() {
	a, err := lexical.Lookup(lexical.Default)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range a.Query("how to run GPT-4o 向量").Terms {
		fmt.Println(t.Term, t.Kind, t.Weight)
	}
	// Output:
	// run word 1
	// gpt word 1
	// gpt-4o whole 0.3
	// 4o word 1
	// 向量 bigram 1
}
