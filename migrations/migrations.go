// Package migrations embeds the schema of Weir as numbered SQL files, applied in order by
// pkg/service/migrate. A released file is never edited; a change is a new file.
package migrations

import "embed"

//go:embed *.sql
var files embed.FS

// FS returns the migration files, NNNN_name.sql, at its root. It is read-only and safe for
// concurrent use.
func FS() embed.FS {
	return files
}
