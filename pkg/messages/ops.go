package messages

// Operations, the last token of a request-reply subject.
const (
	OpSubmit     = "submit"
	OpDelete     = "delete"
	OpKBCreate   = "kb_create" // tenant-scoped
	OpKBList     = "kb_list"   // tenant-scoped
	OpKBGet      = "kb_get"
	OpKBUpdate   = "kb_update"
	OpKBDelete   = "kb_delete"
	OpDocGet     = "documents_get"
	OpDocList    = "documents_list"
	OpDocChunks  = "documents_chunks"
	OpRetrieve   = "retrieve"
	OpDLQList    = "dlq_list"    // tenant-scoped
	OpDLQGet     = "dlq_get"     // tenant-scoped
	OpDLQReplay  = "dlq_replay"  // tenant-scoped
	OpDLQDiscard = "dlq_discard" // tenant-scoped
)
