// Command weir runs Weir on one machine and operates it, here or anywhere. See `weir help`.
package main

import (
	"os"

	"github.com/weir-project/weir/cmd/weir/internal/cli"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func main() {
	parseworker.Main() // takes the process over when it is to read a PDF
	os.Exit(cli.Main(cli.System()))
}
