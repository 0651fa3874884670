package cli

import "github.com/spf13/cobra"

// commands is the table of commands, in the order help shows them.
func commands() []func(*Session) *cobra.Command {
	return []func(*Session) *cobra.Command{
		upCommand,
		statusCommand,
		downCommand,
		migrateCommand,
		demoCommand,
		kbCommand,
		publishCommand,
		docsCommand,
		queryCommand,
		dlqCommand,
		jobsCommand,
		reindexCommand,
		evalCommand,
		doctorCommand,
		fakeembedCommand,
	}
}
