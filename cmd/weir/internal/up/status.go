package up

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/service/child"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// Status is the record of a run, compared with what there is.
type Status struct {
	statedir.Run

	Running bool   `json:"running"`
	Home    string `json:"home"`
	// Problems are what does not answer, by the name of the part.
	Problems map[string]string `json:"problems,omitempty"`
}

const lookTimeout = 3 * time.Second

// Look reads the record of the run and asks NATS and Postgres whether they answer. Without a run it returns
// ErrNoRun of package statedir.
func Look(ctx context.Context, dir statedir.Dir) (Status, error) {
	s := Status{Home: dir.Path()}
	run, err := dir.ReadRun()
	if err != nil {
		return s, err
	}
	s.Run = run
	if s.Running, err = dir.InUse(); err != nil {
		return s, err
	}
	if !s.Running {
		s.State = statedir.StateKilled
		for i, p := range s.Parts {
			s.Parts[i].State = leftOf(ctx, dir, run, p)
		}
		return s, nil
	}
	s.Problems = map[string]string{}
	for _, p := range run.Parts {
		if err := lookAt(ctx, run, p); err != nil {
			s.Problems[p.Name] = err.Error()
		}
	}
	return s, nil
}

// leftOf is the state of a part whose run was killed: what is recorded was true before that.
func leftOf(ctx context.Context, dir statedir.Dir, run statedir.Run, p statedir.Part) string {
	if p.State == statedir.StateExternal {
		return p.State
	}
	switch p.Name {
	case partPostgres:
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		if run.DatabaseURL != "" && askPostgres(ctx, run.DatabaseURL) == nil {
			return statedir.StateLeft
		}
	case partEmbedding:
		if id, err := child.ReadIdentity(embeddingRecord(dir)); err == nil && id.Alive() {
			return statedir.StateLeft
		}
	}
	return statedir.StateKilled
}

func lookAt(ctx context.Context, run statedir.Run, p statedir.Part) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch {
	case p.State != statedir.StateReady && p.State != statedir.StateExternal:
		return errors.New(p.State)
	case p.Name == partNATS && run.NATSURL != "":
		return askNATS(run.NATSURL)
	case p.Name == partPostgres && run.DatabaseURL != "":
		return askPostgres(ctx, run.DatabaseURL)
	case p.PID != 0:
		if _, err := child.Identify(p.PID); err != nil {
			return fmt.Errorf("pid %d: %w", p.PID, err)
		}
	}
	return nil
}

func askNATS(url string) error {
	nc, err := nats.Connect(url, nats.Name("weir-status"), nats.Timeout(lookTimeout))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	nc.Close()
	return nil
}

func askPostgres(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return conn.Close(ctx)
}
