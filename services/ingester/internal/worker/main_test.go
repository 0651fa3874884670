package worker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/services/ingester/internal/worker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		worker.Main()
	}
	goleak.VerifyTestMain(m)
}
