module github.com/weir-project/weir/cmd/weir

go 1.26.0

require (
	github.com/weir-project/weir v0.0.0
	github.com/weir-project/weir/services/embedder v0.0.0
	github.com/weir-project/weir/services/indexer v0.0.0
	github.com/weir-project/weir/services/ingester v0.0.0
	github.com/weir-project/weir/services/retriever v0.0.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/weir-project/weir => ../..

replace github.com/weir-project/weir/services/ingester => ../../services/ingester

replace github.com/weir-project/weir/services/embedder => ../../services/embedder

replace github.com/weir-project/weir/services/indexer => ../../services/indexer

replace github.com/weir-project/weir/services/retriever => ../../services/retriever
