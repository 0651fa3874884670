// Package cli is the command line of weir. A command is one file <noun>_command.go with a constructor
// func(*Session) *cobra.Command, and one line in the table of commands.go.
//
// A command writes its result with Session.Print, so that --json works everywhere, talks to services with
// Session.Request, and returns errors; Main prints them and turns them into the exit codes of
// exit.go.
package cli
