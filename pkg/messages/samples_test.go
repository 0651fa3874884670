package messages

import (
	"bytes"
	"encoding/json"
	"time"
)

// all is every message on any wire of Weir, each with a golden in testdata/golden. A new message is one
// line here; TestEveryMessageIsInTheTable finds a forgotten one.
var all = []struct {
	golden string // file name without .json
	value  any    // pointer
	strict bool   // a request: read with DecodeStrict
}{
	{"submit_text", sampleSubmit("text"), true},
	{"submit_data", sampleSubmit("data"), true},
	{"submit_upload", sampleSubmit("upload"), true},
	{"submit_reply", &SubmitReply{DocID: "annual report 2025.pdf", Subspace: "legal", Version: 3, Status: StatusPending, SubmitID: "import-17"}, false},
	{"submit_reply_unchanged", &SubmitReply{DocID: "a", Subspace: DefaultSubspace, Version: 2, Status: StatusReady, SubmitID: "WEIR_DOCS:812", Unchanged: true}, false},
	{"delete", &Delete{Tenant: "acme", KnowledgeBaseName: "manuals", DocID: "annual report 2025.pdf", Subspace: "legal"}, true},

	{"event_pending", sampleEvent(Event{Status: StatusPending}), false},
	{"event_indexing", sampleEvent(Event{Status: StatusIndexing, Attempt: 1}), false},
	{"event_ready", sampleEvent(Event{Status: StatusReady, Chunks: 42, Reused: 40, Tokens: 780, Warnings: []string{"page 3 has no text"}}), false},
	{"event_ready_reactivated", sampleEvent(Event{Status: StatusReady, Chunks: 42, Reactivated: 2}), false},
	{"event_ready_lines", sampleEvent(Event{Status: StatusReady, Lines: sampleLines()}), false},
	{"event_ready_unchanged", sampleEvent(Event{Status: StatusReady, Unchanged: true, Chunks: 42, Reused: 42}), false},
	{"event_failed", sampleEvent(Event{Status: StatusFailed, Attempt: 2, Error: sampleError()}), false},
	{"event_superseded", sampleEvent(Event{Status: StatusSuperseded}), false},
	{"event_deleting", sampleEvent(Event{Status: StatusDeleting}), false},
	{"event_deleted", sampleEvent(Event{Status: StatusDeleted}), false},
	{"event_no_document", &Event{
		Tenant: "acme", KB: "manuals", Status: StatusFailed, SubmitID: "WEIR_DOCS:813", At: sampleTime(),
		Error: &Error{Code: CodeValidation, Message: "is missing", Field: "docId", Stage: StageIntake},
	}, false},

	{"work_parse", &ParseWork{Ref: sampleRef()}, false},
	{"work_embed", &EmbedWork{
		Ref: sampleRef(), Space: sampleSpace(), Part: 1, Parts: 2,
		Chunks: []EmbedChunk{{Ordinal: 64, Hash: bytes.Repeat([]byte{7}, 32), Text: "passage: Übersicht\n<b>1 & 2</b> \"quoted\""}},
	}, false},
	{"work_index", &IndexWork{Ref: sampleRef(), Part: 1, Parts: 2, Tokens: 12, Vectors: []IndexVector{{Ordinal: 64, Vector: []byte{0, 0, 0x80, 0x3f}}}}, false},
	{"work_index_nothing_left", &IndexWork{Ref: sampleRef(), Parts: 1}, false},
	{"embed_request", &EmbedRequest{Space: sampleSpace(), Texts: []string{"what is covered?"}}, true},
	{"embed_reply", &EmbedReply{Vectors: [][]byte{{0, 0, 0x80, 0x3f}}, Tokens: 6}, false},

	{"kb_create", sampleCreateKB(), true},
	{"kb_create_minimal", &CreateKB{KnowledgeBaseName: "manuals"}, true},
	{"kb_update", &UpdateKB{
		KnowledgeBaseName: "manuals", Description: raw(`null`), Tags: raw(`{"owner":"docs"}`),
		Metadata: MetadataSchema{{Name: "reviewed", Type: TypeDate}}, Retrieval: raw(`{"searchType":["FULL_TEXT"]}`),
	}, true},
	{"kb_update_mandatory_filter", &UpdateKB{
		MandatoryFilter: raw(`{"orAll":[{"equals":{"key":"owner","value":"$tenant"}},{"isNull":{"key":"owner"}}]}`),
		Retrieval:       raw(`{"filterLimits":{"depth":4,"conditions":32}}`),
	}, true},
	{"kb_update_reindex", &UpdateKB{
		KnowledgeBaseName: "manuals", Embedding: &Embedding{Model: "intfloat/multilingual-e5-base", Dims: 768}, Chunking: &Chunking{Size: 300}, Analyzer: "lex1",
	}, true},
	{"kb_ref", &KBRef{KnowledgeBaseName: "manuals"}, true},
	{"kb_list_request", &Page{MaxResults: 20, NextToken: "manuals"}, true},
	{"kb_info", sampleKBInfo(), false},
	{"kb_list", &KBList{KnowledgeBases: []KBInfo{*sampleKBInfo()}, NextToken: "manuals"}, false},

	{"document_ref", &DocumentRef{KnowledgeBaseName: "manuals", DocID: "annual report 2025.pdf", Subspace: "legal"}, true},
	{"documents_list_request", &ListDocuments{KnowledgeBaseName: "manuals", Subspace: []string{"legal"}, Status: StatusFailed, Page: Page{MaxResults: 50, NextToken: "bGVnYWw"}}, true},
	{"document_info", sampleDocumentInfo(), false},
	{"documents_list", &DocumentList{Documents: []DocumentInfo{*sampleDocumentInfo()}, NextToken: "bGVnYWw"}, false},
	{"chunks_list_request", &ListChunks{KnowledgeBaseName: "manuals", DocID: "annual report 2025.pdf", Subspace: "legal", Page: Page{MaxResults: 10}}, true},
	{"chunks_list", &ChunkList{
		Chunks:    []ChunkInfo{{ChunkID: 7, Content: "Revenue grew.", HeadingPath: []string{"Results", "Revenue"}, PageFrom: 3, PageTo: 4, Tokens: 4, Status: "active"}},
		NextToken: "7",
	}, false},
	{"chunks_update", &UpdateChunk{KnowledgeBaseName: "manuals", DocID: "annual report 2025.pdf", Subspace: "legal", ChunkID: 7, Status: ChunkInactive}, true},
	{"chunk_state", &ChunkState{DocID: "annual report 2025.pdf", Subspace: "legal", ChunkID: 7, Status: ChunkInactive}, false},

	{"jobs_start", sampleStartJob(), true},
	{"jobs_start_repair", &StartJob{
		KnowledgeBaseName: "manuals", Kind: JobRepair, Selector: &JobSelector{Subspaces: []string{"legal"}, Filter: raw(`{"pages":{"gt":3}}`), Stale: true},
	}, true},
	{"jobs_resume", &ResumeJob{ID: 4, RetryFailed: true, RateLimit: ptr(20.0)}, true},
	{"jobs_approve", &ApproveJob{ID: 4, Approver: "ops", MaxFailed: ptr(3)}, true},
	{"jobs_list_request", &ListJobs{KnowledgeBaseName: "manuals", State: JobRunning, Page: Page{MaxResults: 20, NextToken: "9"}}, true},
	{"jobs_list", &JobList{Jobs: []JobInfo{*sampleJobInfo()}, NextToken: "4"}, false},
	{"job_ref", &JobRef{ID: 4}, true},
	{"job_info", sampleJobInfo(), false},

	{"dead_letters_list_request", &ListDeadLetters{KnowledgeBaseName: "manuals", Stage: StageParse, State: "open", Page: Page{MaxResults: 50}}, true},
	{"dead_letter_ref", &DeadLetterRef{ID: 5}, true},
	{"dead_letters_list", &DeadLetterList{DeadLetters: []DeadLetter{sampleDeadLetter()}, NextToken: "5"}, false},
	{"dead_letter_detail", &DeadLetterDetail{DeadLetter: sampleDeadLetter(), Headers: map[string]string{HeaderDeadCode: "DAMAGED_DOCUMENT"}, Body: []byte(`{"tenant":"acme"}`)}, false},

	{"retrieve_request", sampleRetrieve(), true},
	{"retrieve_request_minimal", &RetrieveRequest{Query: &RetrievalQuery{Type: QueryText, Text: "what is covered?"}}, true},
	{"retrieve_request_vector", sampleVectorRetrieve(), true},
	{"retrieve_request_filter", sampleFilterRetrieve(), true},
	{"retrieve_reply", sampleRetrieveReply(), false},
	{"retrieve_reply_fallback", sampleFallbackReply(), false},
	{"retrieve_reply_model", sampleModelReply(), false},
	{"retrieve_all_request", sampleMultiRetrieve(), true},
	{"retrieve_all_reply", sampleMultiReply(), false},
	{"retrieve_reply_filter", sampleFilterReply(), false},
	{"batch_retrieve", &BatchRetrieve{Queries: []RetrieveRequest{{Query: &RetrievalQuery{Type: QueryText, Text: "what is covered?"}}, *sampleVectorRetrieve()}}, true},
	{"batch_reply", &BatchReply{Results: []RetrieveReply{*sampleFallbackReply(), {
		Results: []RetrievedChunk{}, Diagnostics: Diagnostics{Generation: 31, Fusion: "DENSE_VECTOR"},
	}}}, false},
	{"search_reply", &SearchReply{
		Results: []SearchResult{{
			ID: "annual report 2025.pdf#7", Text: "Revenue grew.", Score: 0.91, Metadata: raw(`{"pages":12}`), Subspace: "legal", DocID: "annual report 2025.pdf",
			ChunkID: 7, RawScore: ptr(0.91), RawScoreScaled: ptr(0.91), RetrievalPath: PathFallback, Vector: []float32{0.5, -0.25},
		}},
		NextCursor: "AQID", Truncated: true, Diagnostics: Diagnostics{Generation: 31, Fusion: "FULL_TEXT"},
	}, false},

	{"envelope_success", &Envelope{Code: CodeSuccess, RequestID: "q-1", Data: raw(`{"knowledgeBaseName":"manuals"}`)}, false},
	{"envelope_error", &Envelope{Code: CodeValidation, Message: "must be 1 to 1000", RequestID: "q-2", Field: "retrievalConfiguration.rerankingConfiguration.numberOfResults"}, false},
	{"error", sampleError(), false},
}

func ptr[T any](v T) *T { return &v }

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func sampleTime() time.Time { return time.Date(2026, 3, 1, 12, 30, 0, 250_000_000, time.UTC) }

func sampleError() *Error {
	return &Error{Code: CodeDamagedDocument, Message: "the zip directory is broken", Stage: StageParse}
}

func sampleSubmit(content string) *Submit {
	s := &Submit{
		Tenant: "acme", KnowledgeBaseName: "manuals", DocID: "annual report 2025.pdf", Subspace: "legal",
		OSSKey: "s3/2025/annual.pdf", Title: "Annual report – 年报", ContentType: "application/pdf",
		Metadata: raw(`{"pages":9007199254740993,"lang":["en","zh"]}`),
	}
	switch content {
	case "text":
		s.ContentType, s.Text = "text/markdown", ptr("# Revenue\n\nRevenue grew by 4 % <in 2025> & after.")
	case "data":
		s.Data = []byte("%PDF-1.7\n")
	case "upload":
		s.Upload = &Upload{Object: "annual-1", Size: 31457280}
	}
	return s
}

func sampleEvent(e Event) *Event {
	e.Tenant, e.KB, e.KBID, e.Subspace, e.DocID, e.Version = "acme", "manuals", 12, "legal", "annual report 2025.pdf", 3
	e.SubmitID, e.At = "import-17", sampleTime()
	return &e
}

func sampleRef() Ref {
	return Ref{Tenant: "acme", KB: "manuals", KBID: 12, Generation: 31, Subspace: "legal", DocID: "annual report 2025.pdf", DocKey: 977, Version: 3}
}

func sampleSpace() Space {
	return Space{Model: "multilingual-e5-small", Dims: 384, Metric: "cosine", Normalized: true, QueryPrefix: "query: ", PassagePrefix: "passage: "}
}

func sampleCreateKB() *CreateKB {
	return &CreateKB{
		KnowledgeBaseName: "manuals", Description: "Product manuals", Tags: map[string]string{"owner": "docs"}, IndexType: IndexTypeHybrid, Subspace: true,
		Metadata: MetadataSchema{{Name: "pages", Type: TypeLong}, {Name: "lang", Type: TypeStringList}, {Name: "acl", Type: TypeStringList, Internal: true}},
		Embedding: &Embedding{
			Model: "multilingual-e5-small", Dims: 384, Metric: "cosine", Normalized: ptr(true), QueryPrefix: ptr("query: "), PassagePrefix: ptr("passage: "),
		},
		Chunking: &Chunking{Strategy: ChunkTokens, Size: 400, Overlap: ptr(40)}, Analyzer: "lex1", Retrieval: raw(`{"searchType":["DENSE_VECTOR","FULL_TEXT"]}`),
		MandatoryFilter: raw(`"acl IS NULL OR acl = '$tenant'"`),
	}
}

func sampleFilterRetrieve() *RetrieveRequest {
	return &RetrieveRequest{Query: &RetrievalQuery{Type: QueryFilter}, Configuration: &RetrievalConfiguration{
		Filter: raw(`{"equals":{"key":"pages","value":12}}`), Reranking: &RerankingConfig{NumberOfResults: ptr(100)},
	}}
}

func sampleFilterReply() *RetrieveReply {
	return &RetrieveReply{
		Results: []RetrievedChunk{{
			DocID: "annual report 2025.pdf", ChunkID: 7, OSSKey: "s3/2025/annual.pdf", Content: "Revenue grew.", Subspace: "legal", Metadata: raw(`{"pages":12}`),
			RetrievalPath: PathFilter,
		}},
		NextCursor: "AgID", Diagnostics: Diagnostics{Generation: 31, Fusion: PathFilter},
	}
}

func sampleKBInfo() *KBInfo {
	return &KBInfo{
		KnowledgeBaseName: "manuals", ID: 12, Description: "Product manuals", Tags: map[string]string{"owner": "docs"}, IndexType: IndexTypeHybrid,
		Subspace: true, Metadata: MetadataSchema{{Name: "pages", Type: TypeLong}}, Embedding: ptr(sampleSpace()),
		Chunking: Chunking{Strategy: ChunkTokens, Size: 400, Overlap: ptr(40)}, Analyzer: "lex1", Retrieval: raw(`{"searchType":["FULL_TEXT"]}`),
		Generation: 31, CreatedAt: sampleTime(), UpdatedAt: sampleTime(),
		Documents: &DocumentCounts{Pending: 1, Indexing: 2, Ready: 300, Failed: 4, Chunks: 12000},
	}
}

func sampleLines() *Lines {
	return &Lines{
		Total: 12, Accepted: 6, Unchanged: 3, Superseded: 1, Failed: 2,
		Errors: []LineError{{Line: 3, Error: *Invalid("body", "is not a JSON object")}, {Line: 8, DocID: "a", Error: *Invalid("metadata.year", "must be a number")}},
	}
}

func sampleDocumentInfo() *DocumentInfo {
	return &DocumentInfo{
		DocID: "annual report 2025.pdf", Subspace: "legal", OSSKey: "s3/2025/annual.pdf", Title: "Annual report", ContentType: "application/pdf", SizeBytes: 31457280,
		Metadata: raw(`{"pages":9007199254740993}`), Status: StatusFailed, Version: 3, LiveVersion: 2, Chunks: 42, Reused: 40, Embedded: 41, Tokens: 780, Reactivated: 2, Lines: sampleLines(),
		Warnings: []string{"page 3 has no text"}, Error: sampleError(), SubmittedAt: sampleTime(), UpdatedAt: sampleTime(),
	}
}

func sampleStartJob() *StartJob {
	return &StartJob{
		KnowledgeBaseName: "manuals", Kind: JobReindex, Embedding: &Embedding{Model: "intfloat/multilingual-e5-base", Dims: 768},
		Chunking: &Chunking{Strategy: ChunkTokens, Size: 300}, Analyzer: "lex1", RateLimit: 50, MaxFailed: 2, Manual: true,
		Gate:          &JobGate{K: 10, MaxLoss: 0.01, Judged: []JudgedQuery{{Query: "what is covered?", Relevant: map[string]int{"annual report 2025.pdf": 2}}}},
		RetainSeconds: ptr(int64(3600)), DryRun: true,
	}
}

func sampleJobInfo() *JobInfo {
	return &JobInfo{
		ID: 4, KnowledgeBaseName: "manuals", Kind: JobReindex, State: JobWaiting, Phase: PhaseBuild, Reason: "approval", Source: 31, Target: 32,
		Config:    JobConfig{Embedding: ptr(sampleSpace()), Chunking: Chunking{Strategy: ChunkTokens, Size: 300, Overlap: ptr(30)}, Parser: "p1", Analyzer: "lex1"},
		RateLimit: 50, MaxFailed: 2, Manual: true, Approver: "ops", Gate: &JobGate{K: 10, Sample: 50, MinOverlap: 0.5, MaxLoss: 0.02},
		GateResult: &JobGateResult{Passed: true, Queries: 50, K: 10, Overlap: ptr(0.91), At: sampleTime()},
		Estimate:   JobEstimate{Documents: 300, Chunks: 12000, Texts: 12000, Tokens: 400000, Parse: true},
		Counts:     JobCounts{Total: 300, Done: 299, Failed: 1, Skipped: 2, Chunks: 11900, Reused: 100, Embedded: 11800, Tokens: 390000},
		Errors:     []JobError{{Code: CodeEmbeddingRejected, Count: 1, Message: "chunk 12 was refused", Documents: []string{"annual report 2025.pdf"}}},
		Rate:       12.5, EtaSeconds: ptr(0.5), Runner: "host/1", Fence: 3, CreatedAt: sampleTime(), UpdatedAt: sampleTime(),
		FlippedAt: ptr(sampleTime()), EndedAt: ptr(sampleTime()), RetainedUntil: ptr(sampleTime()),
	}
}

func sampleDeadLetter() DeadLetter {
	return DeadLetter{
		ID: 5, KB: "manuals", Subspace: "legal", DocID: "annual report 2025.pdf", Version: 3, Stage: StageParse, Error: *sampleError(), Attempts: 1,
		Subject: "weir.work.parse.2.acme.manuals", SizeBytes: 212, State: "open", At: sampleTime(),
	}
}

func sampleRetrieve() *RetrieveRequest {
	return &RetrieveRequest{
		KnowledgeBaseName: "manuals", Subspace: []string{"legal"}, Query: &RetrievalQuery{Type: QueryText, Text: "what is covered?"},
		Configuration: &RetrievalConfiguration{
			SearchType: []SearchType{DenseVector, FullText}, Dense: &DenseConfig{NumberOfResults: ptr(20)},
			FullText: &FullTextConfig{NumberOfResults: ptr(20), Syntax: SyntaxSimple, K1: ptr(1.2), B: ptr(0.75)},
			Reranking: &RerankingConfig{
				Type: RerankWeight, NumberOfResults: ptr(10), Weight: &WeightConfig{Dense: ptr(0.7), FullText: ptr(0.3)},
				RRF:   &RRFConfig{Dense: ptr(1.0), FullText: ptr(1.0), K: ptr(json.Number("60"))},
				Model: &ModelConfig{Provider: "local", Model: "bge-reranker-v2-m3"},
			},
			Filter:           raw(`{"greaterThanOrEquals":{"key":"pages","value":12}}`),
			FilterExpression: NewExpression("pages IS NOT NULL"),
		},
		GroupBy: &GroupBy{Type: GroupByDocument, ChunksPerGroup: 2}, Explain: true, Highlight: true, AllowPartial: true, Cursor: "AQID",
	}
}

func sampleVectorRetrieve() *RetrieveRequest {
	return &RetrieveRequest{
		Query: &RetrievalQuery{Type: QueryText, Vector: []float32{0.5, -0.25}},
		Configuration: &RetrievalConfiguration{
			SearchType: []SearchType{DenseVector}, Dense: &DenseConfig{FallbackToFullText: ptr(false)}, ScoreThreshold: NewThreshold(0.65),
			Output: &OutputConfig{Fields: []string{"pages"}, Vector: ptr(true), Content: ptr(false)},
		},
	}
}

func sampleFallbackReply() *RetrieveReply {
	return &RetrieveReply{
		Results: []RetrievedChunk{{
			DocID: "a", OSSKey: "a", Score: 4.5, Content: "Revenue grew.", Subspace: "legal", Metadata: raw(`{}`), RetrievalPath: PathFallback,
		}},
		Diagnostics: Diagnostics{
			Generation: 31, Dense: &LegDiagnostics{Exact: true}, FullText: &LegDiagnostics{Exact: true, Index: "segments", Candidates: 1, Terms: 1}, Fusion: "FULL_TEXT",
		},
	}
}

func sampleModelReply() *RetrieveReply {
	return &RetrieveReply{
		Results: []RetrievedChunk{{
			DocID: "a", OSSKey: "a", Score: -1.25, Content: "Revenue grew.", Subspace: "legal", Metadata: raw(`{}`), RawScore: ptr(-1.25), RawScoreScaled: ptr(0.0),
			Explain: &Explain{Fusion: "MODEL", Dense: &LegDetail{Rank: 2, Raw: 0.88, Scaled: 0.94}, Model: &ModelDetail{Raw: -1.25}},
		}, {
			DocID: "b", OSSKey: "b", Content: "Costs grew.", Subspace: "legal", Metadata: raw(`{}`), RawScore: ptr(0.0), RawScoreScaled: ptr(0.0),
			Explain: &Explain{Fusion: "MODEL", Dense: &LegDetail{Rank: 1, Raw: 0.9, Scaled: 0.95}, Model: &ModelDetail{Omitted: true}},
		}},
		Diagnostics: Diagnostics{
			Generation: 31, Dense: &LegDiagnostics{Exact: true, Candidates: 2}, Fusion: "MODEL",
			Rerank: &RerankReport{Provider: "local", Model: "bge-reranker-v2-m3", Documents: 2, Cut: 1, Omitted: 1, Millis: 41.5},
		},
	}
}

func sampleMultiRetrieve() *RetrieveRequest {
	return &RetrieveRequest{
		KnowledgeBaseNames: []string{"manuals", "reports"}, Subspaces: map[string][]string{"reports": {"legal", "public"}},
		Query: &RetrievalQuery{Type: QueryText, Text: "what is covered?"}, Explain: true,
	}
}

func sampleMultiReply() *RetrieveReply {
	return &RetrieveReply{
		Results: []RetrievedChunk{{
			DocID: "annual report 2025.pdf", ChunkID: 7, OSSKey: "s3/2025/annual.pdf", Score: 0.91, Content: "Revenue grew.", Subspace: "legal",
			Metadata: raw(`{"pages":12}`), RawScore: ptr(0.91), RawScoreScaled: ptr(0.91), KBIDs: []string{"manuals", "reports"},
			Sources: []ChunkSource{
				{KB: "reports", Subspace: "legal", DocID: "annual report 2025.pdf", ChunkID: 7, Score: 0.91},
				{KB: "manuals", Subspace: DefaultSubspace, DocID: "copy", Score: 0.87},
			},
		}},
		Failures: []KBFailure{{KB: "archive", Code: CodeUnavailable, Message: "something the request needs is away"}},
		Diagnostics: Diagnostics{
			Fusion: "RRF", Dropped: []string{DroppedRerank}, Notes: []string{"no time was left for the rerank model"},
			KnowledgeBases: []KBReport{
				{KB: "manuals", Generation: 12, Dense: &LegDiagnostics{Exact: true, Candidates: 20, Millis: 1.5}, Degraded: []string{"FULL_TEXT: UNAVAILABLE"}},
				{KB: "reports", Generation: 31, FullText: &LegDiagnostics{Exact: true, Index: "segments", Candidates: 20, Terms: 3}, Restarted: true, Notes: []string{"terms of the query beyond 64 were left out"}},
			},
		},
	}
}

func sampleRetrieveReply() *RetrieveReply {
	return &RetrieveReply{
		Results: []RetrievedChunk{{
			DocID: "annual report 2025.pdf", ChunkID: 7, OSSKey: "s3/2025/annual.pdf", Score: 0.91, Content: "Revenue grew.", Subspace: "legal",
			Metadata: raw(`{"pages":12}`), Title: "Annual report", HeadingPath: []string{"Results"}, PageFrom: 3, PageTo: 4, RawScore: ptr(0.91), RawScoreScaled: ptr(0.91),
			Highlights: []Highlight{{Text: "Revenue grew.", End: 13, Marks: []Mark{{Start: 0, End: 7}}}}, Vector: []float32{0.5, -0.25},
			Explain: &Explain{Fusion: "WEIGHT", Dense: &LegDetail{Rank: 1, Raw: 0.88, Scaled: 1, Weight: 0.7}, FullText: &LegDetail{Raw: 7.1, Scaled: 0.7, Weight: 0.3}},
		}},
		NextCursor: "AQID", Truncated: true,
		Diagnostics: Diagnostics{
			Generation: 31, Dense: &LegDiagnostics{Exact: true, Index: "none", Candidates: 20, Millis: 1.5},
			FullText: &LegDiagnostics{Exact: true, Index: "segments", Candidates: 20, Terms: 3, Millis: 0.4}, Fusion: "WEIGHT",
			Timing:   Timing{EmbedMillis: 6.5, SQLMillis: 2.1, ScoreMillis: 0.3, TotalMillis: 9.4},
			Degraded: []string{"dense: the embedding server is away"}, Skipped: 1, Restarted: true, Notes: []string{"small collection"},
		},
	}
}
