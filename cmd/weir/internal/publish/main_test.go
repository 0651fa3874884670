package publish_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testkit.UploadLeak()) }
