package parse_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/services/ingester/parseworker"
)

func TestMain(m *testing.M) {
	parseworker.Main()
	goleak.VerifyTestMain(m)
}
