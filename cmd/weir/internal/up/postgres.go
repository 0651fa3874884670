package up

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/weir-project/weir/pkg/service/localpg"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// newCluster is the major version a new cluster is made with.
const newCluster = "18"

// postgresConfig picks the place and the programs of the version the cluster was made with.
func postgresConfig(dir statedir.Dir, setup statedir.Setup, password string, logger *slog.Logger) (localpg.Config, error) {
	major := newCluster
	if body, err := os.ReadFile(dir.Path("postgres", "data", "PG_VERSION")); err == nil {
		major = strings.TrimSpace(string(body))
	}
	bin := setup.Postgres[major]
	if bin == "" {
		return localpg.Config{}, fmt.Errorf("set-up has no Postgres %s; run scripts/setup", major)
	}
	return localpg.Config{
		Bin: bin, Dir: dir.Path("postgres"), Password: password,
		Logger: logger.With("part", partPostgres),
	}, nil
}
