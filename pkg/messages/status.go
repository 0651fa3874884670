package messages

// DocumentStatus is the state of a document's newest accepted version.
type DocumentStatus string

// A submit goes Pending, Indexing, then Ready or Failed. Superseded is the terminal event of a
// submit that a newer one overtook; Deleted that of a delete. Only Ready versions are retrievable.
const (
	StatusPending    DocumentStatus = "Pending"
	StatusIndexing   DocumentStatus = "Indexing"
	StatusReady      DocumentStatus = "Ready"
	StatusFailed     DocumentStatus = "Failed"
	StatusDeleting   DocumentStatus = "Deleting"
	StatusDeleted    DocumentStatus = "Deleted"
	StatusSuperseded DocumentStatus = "Superseded"
)

// Terminal reports whether an event of this status ends a submit or delete.
func (s DocumentStatus) Terminal() bool {
	switch s {
	case StatusReady, StatusFailed, StatusDeleted, StatusSuperseded:
		return true
	}
	return false
}
