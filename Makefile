# Weir: everything a developer runs. `make help` lists it.

EVAL ?= ../shared/eval
CORPUS ?= ../shared/corpus
export CASE CORPUS CORPUSFLAGS EVAL FUZZTIME BENCH BENCHTIME KEEP GOTESTFLAGS

.PHONY: help setup build test conformance reindex lint fuzz bench eval corpus tidy generate verify demo up down migrate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install what Weir needs beyond Go into its state directory (Postgres, the embedding model)
	@scripts/setup

build: ## weir, ingester, embedder, indexer, retriever into bin/
	@scripts/build

test: ## every test, on private Postgres clusters (KEEP=1 leaves them; GOTESTFLAGS="-run X")
	@scripts/test

conformance: ## the cases of the retrieval contract, a line each (CASE=CT-18 for one)
	@scripts/conformance

reindex: ## the tests of re-indexing at full size, and its benchmarks
	@scripts/reindex

lint: ## formatting, go vet, staticcheck, house rules
	@scripts/lint

fuzz: ## every fuzz target, FUZZTIME each (default 5s)
	@scripts/fuzz

bench: ## benchmarks of the embedding server and of every module (BENCH=pattern BENCHTIME=1s)
	@scripts/bench

eval: setup build ## retrieval quality on every set of a folder, one table (EVAL=DIR, default ../shared/eval)
	@scripts/eval

tidy: ## go mod tidy in every module
	@scripts/tidy

generate: ## go generate in every module
	@scripts/generate

verify: ## fail when modules are untidy, generated files stale or code unformatted
	@scripts/verify

corpus: ## parse a folder of files with an expect.jsonl and judge it (CORPUS=DIR, CORPUSFLAGS="-damaged 1000 -runs 10 -pdf-engine gate")
	@scripts/corpus

demo: setup build ## start everything, publish the examples, ask three questions
	@bin/weir demo

up: setup build ## start everything in the foreground (ends with Ctrl-C)
	@bin/weir up

down: build ## stop what `weir up --detach` started
	@bin/weir down

migrate: setup build ## apply the schema and provision the streams
	@bin/weir migrate
