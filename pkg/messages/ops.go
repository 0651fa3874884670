package messages

// Operations, the last token of a request-reply subject.
const (
	OpSubmit      = "submit"
	OpDelete      = "delete"
	OpKBCreate    = "kb_create" // tenant-scoped
	OpKBList      = "kb_list"   // tenant-scoped
	OpKBGet       = "kb_get"
	OpKBUpdate    = "kb_update"
	OpKBDelete    = "kb_delete"
	OpDocGet      = "documents_get"
	OpDocList     = "documents_list"
	OpDocChunks   = "documents_chunks"
	OpChunkUpdate = "chunks_update"
	OpRetrieve    = "retrieve"
	OpBatch       = "batch_retrieve"
	OpSearch      = "search"
	OpDLQList     = "dlq_list"      // tenant-scoped
	OpDLQGet      = "dlq_get"       // tenant-scoped
	OpDLQReplay   = "dlq_replay"    // tenant-scoped
	OpDLQDiscard  = "dlq_discard"   // tenant-scoped
	OpJobStart    = "jobs_start"    // tenant-scoped
	OpJobList     = "jobs_list"     // tenant-scoped
	OpJobGet      = "jobs_get"      // tenant-scoped
	OpJobPause    = "jobs_pause"    // tenant-scoped
	OpJobResume   = "jobs_resume"   // tenant-scoped
	OpJobCancel   = "jobs_cancel"   // tenant-scoped
	OpJobApprove  = "jobs_approve"  // tenant-scoped
	OpJobRollback = "jobs_rollback" // tenant-scoped
)

// Operation is a request-reply operation. Those that are not of the tenant are of a knowledge base.
type Operation struct {
	Name           string
	TenantScoped   bool
	Request, Reply any // zero values of the messages; Reply is the envelope's data
}

// Operations is every operation. docs/asyncapi.yaml and what services show to discovery follow it.
func Operations() []Operation {
	return []Operation{
		{OpSubmit, false, Submit{}, SubmitReply{}},
		{OpDelete, false, Delete{}, SubmitReply{}},
		{OpKBCreate, true, CreateKB{}, KBInfo{}},
		{OpKBList, true, Page{}, KBList{}},
		{OpKBGet, false, KBRef{}, KBInfo{}},
		{OpKBUpdate, false, UpdateKB{}, KBInfo{}},
		{OpKBDelete, false, KBRef{}, KBRef{}},
		{OpDocGet, false, DocumentRef{}, DocumentInfo{}},
		{OpDocList, false, ListDocuments{}, DocumentList{}},
		{OpDocChunks, false, ListChunks{}, ChunkList{}},
		{OpChunkUpdate, false, UpdateChunk{}, ChunkState{}},
		{OpRetrieve, false, RetrieveRequest{}, RetrieveReply{}},
		{OpBatch, false, BatchRetrieve{}, BatchReply{}},
		{OpSearch, false, RetrieveRequest{}, SearchReply{}},
		{OpDLQList, true, ListDeadLetters{}, DeadLetterList{}},
		{OpDLQGet, true, DeadLetterRef{}, DeadLetterDetail{}},
		{OpDLQReplay, true, DeadLetterRef{}, DeadLetterRef{}},
		{OpDLQDiscard, true, DeadLetterRef{}, DeadLetterRef{}},
		{OpJobStart, true, StartJob{}, JobInfo{}},
		{OpJobList, true, ListJobs{}, JobList{}},
		{OpJobGet, true, JobRef{}, JobInfo{}},
		{OpJobPause, true, JobRef{}, JobInfo{}},
		{OpJobResume, true, ResumeJob{}, JobInfo{}},
		{OpJobCancel, true, JobRef{}, JobInfo{}},
		{OpJobApprove, true, ApproveJob{}, JobInfo{}},
		{OpJobRollback, true, JobRef{}, JobInfo{}},
	}
}
