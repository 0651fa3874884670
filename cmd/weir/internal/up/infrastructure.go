package up

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/service/child"
	"github.com/weir-project/weir/pkg/service/embednats"
	"github.com/weir-project/weir/pkg/service/localpg"
	"github.com/weir-project/weir/pkg/service/statedir"
)

const (
	natsUser             = "weir"
	defaultEmbeddingPort = 8090
	// plentyOfStore lets every stream reserve its maximum. The streams' own limits are what holds; a
	// share of the disk that is free today would refuse streams on a small disk.
	plentyOfStore = 1 << 42
	// pollPostgres is how often the Postgres is looked at, which is not our child.
	pollPostgres = 500 * time.Millisecond
	stopWait     = 2 * time.Minute
)

// startInfrastructure starts NATS, Postgres and the embedding server side by side, or notes whose are used instead, and
// waits until all are ready.
func (r *runtime) startInfrastructure(ctx context.Context) error {
	if err := r.stopLeft(ctx); err != nil {
		return err
	}
	if err := r.choosePorts(); err != nil {
		return err
	}
	r.natsURL, r.databaseURL = r.opts.Process.NATSURL.Reveal(), r.opts.Process.DatabaseURL.Reveal()
	r.embeddingURL = r.opts.EmbeddingURL.Reveal()
	works := map[string]struct {
		level int
		work  work
	}{
		partNATS:      {levelBus, r.runNATS},
		partPostgres:  {levelStore, r.postgresWork()},
		partEmbedding: {levelStore, r.runEmbedding},
	}
	var started []*keeper
	for _, name := range infrastructure() {
		switch {
		case r.opts.runs(name):
			started = append(started, r.group.begin(name, works[name].level, works[name].work))
		case r.opts.replacements()[name] != "":
			r.record.part(name, func(p *statedir.Part) { p.State = statedir.StateExternal })
		}
	}
	if err := r.group.await(ctx, started...); err != nil {
		return err
	}
	run := r.record.snapshot()
	r.addresses(run)
	r.record.change(func(run *statedir.Run) {
		run.NATSURL, run.DatabaseURL, run.EmbeddingURL = r.natsURL, r.databaseURL, r.embeddingURL
	})
	r.rememberPorts(run)
	return nil
}

// addresses sets the URLs of what runs here, from the ports it listens on.
func (r *runtime) addresses(run statedir.Run) {
	for _, p := range run.Parts {
		host := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port))
		switch {
		case p.State == statedir.StateExternal:
		case p.Name == partNATS:
			r.natsURL = "nats://" + natsUser + ":" + r.keys.NATSPassword + "@" + host
		case p.Name == partPostgres:
			r.databaseURL = localpg.URL(r.keys.PostgresPassword, p.Port)
		case p.Name == partEmbedding:
			r.embeddingURL = "http://" + host + "/v1"
		}
	}
}

// stopLeft ends what a killed run left behind, except Postgres, which is taken over.
func (r *runtime) stopLeft(ctx context.Context) error {
	pid, err := child.StopOrphan(ctx, embeddingRecord(r.dir), 5*time.Second)
	if err != nil {
		return fmt.Errorf("stop embedding server of a killed run: %w", err)
	}
	if pid != 0 {
		r.logger.Info("stopped the embedding server that a killed run left", "pid", pid)
	}
	return nil
}

func (r *runtime) choosePorts() error {
	keys, err := r.dir.Keys()
	if err != nil {
		return err
	}
	for _, p := range []struct {
		given, standard int
		port            *int
	}{
		{r.opts.NATSPort, embednats.DefaultPort, &keys.NATSPort},
		{r.opts.PostgresPort, localpg.DefaultPort, &keys.PostgresPort},
		{r.opts.EmbeddingPort, defaultEmbeddingPort, &keys.EmbeddingPort},
	} {
		if p.given != 0 {
			*p.port = p.given
			continue
		}
		if *p.port, err = statedir.FreePort(*p.port, p.standard); err != nil {
			return err
		}
	}
	r.keys = keys
	return nil
}

// rememberPorts keeps the ports of what runs here for the next run.
func (r *runtime) rememberPorts(run statedir.Run) {
	keys, err := r.dir.Keys()
	if err != nil {
		r.logger.Error("cannot remember ports", "err", err)
		return
	}
	ports := map[string]*int{partNATS: &keys.NATSPort, partPostgres: &keys.PostgresPort, partEmbedding: &keys.EmbeddingPort}
	for _, p := range run.Parts {
		if port := ports[p.Name]; port != nil && p.Port != 0 {
			*port = p.Port
		}
	}
	if err := r.dir.WriteKeys(keys); err != nil {
		r.logger.Error("cannot remember ports", "err", err)
	}
}

// natsHolder gives in-process connections to the server that runs now, also to a connection that
// reconnects after the server was started again.
type natsHolder struct {
	server atomic.Pointer[embednats.Server]
}

// InProcessConn opens one end of a connection.
func (h *natsHolder) InProcessConn() (net.Conn, error) {
	s := h.server.Load()
	if s == nil {
		return nil, errors.New("the embedded nats server does not run")
	}
	return s.Raw().InProcessConn()
}

func (h *natsHolder) inProcess(o *nats.Options) error { return nats.InProcessServer(h)(o) }

func (r *runtime) runNATS(ctx context.Context, ready func(statedir.Part)) error {
	s, err := embednats.Start(ctx, embednats.Config{
		Dir: r.dir.Path("nats"), Port: r.keys.NATSPort, User: natsUser, Password: r.keys.NATSPassword,
		MaxStoreBytes: plentyOfStore, Logger: r.logger.With("part", partNATS),
	})
	if err != nil {
		return err
	}
	r.bus.server.Store(s)
	defer r.bus.server.Store(nil)
	ready(statedir.Part{Port: s.Port()})
	select {
	case <-ctx.Done():
		s.Stop()
		return nil
	case <-s.Done():
		return errors.New("the nats server stopped")
	}
}

// postgresWork returns the work of the Postgres part. A Postgres that was taken over keeps its own port,
// and so do its successors, because the port is in addresses already given out.
func (r *runtime) postgresWork() work {
	port := r.keys.PostgresPort
	return func(ctx context.Context, ready func(statedir.Part)) error {
		setup, err := statedir.ReadSetup(r.opts.setupFile())
		if err != nil {
			return err
		}
		cfg, err := postgresConfig(r.dir, setup, r.keys.PostgresPassword, r.logger)
		if err != nil {
			return err
		}
		cfg.Port = port
		c, err := localpg.Start(ctx, cfg)
		if err != nil {
			return errors.Join(err, stopInterrupted(ctx, cfg))
		}
		port = c.Port()
		note := ""
		if c.Adopted() {
			note = "taken over from a killed run"
		}
		ready(statedir.Part{PID: c.PID(), Port: port, Note: note})
		return watchPostgres(ctx, c, cfg.Dir)
	}
}

// watchPostgres returns an error when the server dies, and stops it when ctx ends.
func watchPostgres(ctx context.Context, c *localpg.Cluster, dir string) error {
	tick := time.NewTicker(pollPostgres)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			stopCtx, cancel := context.WithTimeout(context.Background(), stopWait)
			defer cancel()
			return c.Stop(stopCtx)
		case <-tick.C:
			if !c.Running() {
				return fmt.Errorf("postgres (pid %d) died; its log is in %s", c.PID(), dir)
			}
		}
	}
}

// stopInterrupted stops a Postgres whose start was cut short by the end of the run.
func stopInterrupted(ctx context.Context, cfg localpg.Config) error {
	if ctx.Err() == nil {
		return nil
	}
	stopCtx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	_, err := localpg.StopLeft(stopCtx, cfg)
	return err
}

// embeddingRecord is the file that tells which process the embedding server is.
func embeddingRecord(dir statedir.Dir) string { return dir.Path("embedding.pid.json") }

func (r *runtime) runEmbedding(ctx context.Context, ready func(statedir.Part)) error {
	setup, err := statedir.ReadSetup(r.opts.setupFile())
	if err != nil {
		return err
	}
	port := strconv.Itoa(r.keys.EmbeddingPort)
	p, err := child.Start(child.Spec{
		Name: "embedding server", Path: setup.Python,
		Args: []string{
			setup.Embedding.Script, "--host", "127.0.0.1", "--port", port,
			"--cache", setup.Embedding.Cache, "--parent-pid", strconv.Itoa(os.Getpid()),
		},
		Env:        []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONUNBUFFERED=1", "HOME=" + r.dir.Path()},
		Dir:        r.dir.Path(),
		LogPath:    r.dir.Path("log", "embedding.log"),
		RecordPath: embeddingRecord(r.dir),
	})
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := awaitHTTP(ctx, "http://127.0.0.1:"+port+"/health", p); err != nil {
		return err
	}
	ready(statedir.Part{PID: p.PID(), Port: r.keys.EmbeddingPort})
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
		return p.Err()
	}
}

// awaitHTTP waits until url answers 200 while the child lives.
func awaitHTTP(ctx context.Context, url string, p *child.Process) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, client, url) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Done():
			return p.Err()
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
