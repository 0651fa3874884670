// Command ingester takes documents in. See package ingester.
package main

import (
	"os"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/services/ingester"
	"github.com/weir-project/weir/services/ingester/parseworker"
)

func main() {
	parseworker.Main()
	cfg := ingester.DefaultConfig()
	os.Exit(service.Main("ingester", &cfg, service.Serve(ingester.Open)))
}
