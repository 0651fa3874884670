module github.com/weir-project/weir/services/embedder

go 1.26.0

require github.com/weir-project/weir v0.0.0

replace github.com/weir-project/weir => ../..
