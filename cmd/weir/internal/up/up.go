package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/service/statedir"
)

// ErrRuns is returned by Run when another run holds the state directory.
var ErrRuns = errors.New("weir is running already")

// runtime is one run.
type runtime struct {
	opts      Options
	dir       statedir.Dir
	logger    *slog.Logger
	keys      statedir.Keys
	record    *record
	group     *group
	telemetry *service.Telemetry
	bus       natsHolder

	natsURL, databaseURL, embeddingURL string
}

// Run runs until ctx ends or a part cannot be kept running. ready is called with the record of the run once
// everything works. opts have been validated.
func Run(ctx context.Context, opts Options, logger *slog.Logger, ready func(statedir.Run)) (err error) {
	if err := opts.Dir.Create(); err != nil {
		return err
	}
	lock, err := opts.Dir.Lock()
	if errors.Is(err, statedir.ErrLocked) {
		return running(opts.Dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	telemetry, err := service.NewTelemetry(ctx, "weir", opts.Getenv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(telemetry)) }()

	r := &runtime{opts: opts, dir: opts.Dir, logger: logger, telemetry: telemetry}
	r.record = &record{dir: opts.Dir, logger: logger, run: statedir.Run{
		PID: os.Getpid(), StartedAt: time.Now().UTC().Truncate(time.Second), State: statedir.StateStarting,
		HTTPAddr: opts.Process.HTTPAddr, Parts: []statedir.Part{},
	}}
	r.group = newGroup(logger, r.record, defaultPolicy(), opts.Process.Grace)
	defer func() { err = errors.Join(err, r.stop()) }()
	return r.run(ctx, ready)
}

// running is ErrRuns with what is known of the other run.
func running(dir statedir.Dir) error {
	run, err := dir.ReadRun()
	if err != nil {
		return fmt.Errorf("%w in %s (it has not said more yet)", ErrRuns, dir.Path())
	}
	return fmt.Errorf("%w: pid %d, %s since %s, state directory %s; `weir status` shows it, `weir down` stops it",
		ErrRuns, run.PID, run.State, run.StartedAt.Local().Format(time.DateTime), dir.Path())
}

func shutdown(t *service.Telemetry) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.Shutdown(ctx)
}

func (r *runtime) run(ctx context.Context, ready func(statedir.Run)) error {
	r.record.change(func(*statedir.Run) {})
	stopHTTP, err := r.serveHTTP()
	if err != nil {
		return err
	}
	defer stopHTTP()
	if err := r.startInfrastructure(ctx); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.startServices(ctx); err != nil {
		return err
	}
	r.record.change(func(run *statedir.Run) { run.State = statedir.StateReady })
	r.logger.Info("everything runs", "state_dir", r.dir.Path())
	ready(r.record.snapshot())
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.group.fatal:
		return err
	}
}

// stop ends all parts, and the record with them.
func (r *runtime) stop() error {
	r.record.change(func(run *statedir.Run) { run.State = statedir.StateStopping })
	return errors.Join(r.group.stop(), r.dir.RemoveRun())
}

func (r *runtime) serveHTTP() (stop func(), err error) {
	if r.opts.Process.HTTPAddr == "" {
		return func() {}, nil
	}
	health := &service.Health{}
	health.Ready()
	health.Check("parts", func(context.Context) error {
		run := r.record.snapshot()
		if run.State != statedir.StateReady {
			return errors.New(run.State)
		}
		return notReady(run.Parts)
	})
	return service.ServeHTTP(r.opts.Process.HTTPAddr, health.Handler(r.telemetry.Metrics()), r.logger)
}

func notReady(parts []statedir.Part) error {
	var bad []string
	for _, p := range parts {
		if p.State != statedir.StateReady && p.State != statedir.StateExternal {
			bad = append(bad, p.Name+" is "+p.State)
		}
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, ", "))
	}
	return nil
}

// startServices starts the services asked for, all at once: none needs another to be there.
func (r *runtime) startServices(ctx context.Context) error {
	var started []*keeper
	for _, spec := range services() {
		if !r.opts.runs(spec.name) {
			continue
		}
		started = append(started, r.group.begin(spec.name, levelService, func(ctx context.Context, ready func(statedir.Part)) error {
			return r.runService(ctx, spec, ready)
		}))
	}
	return r.group.await(ctx, started...)
}

func (r *runtime) runService(ctx context.Context, spec serviceSpec, ready func(statedir.Part)) (err error) {
	p := &service.Process{
		Name: spec.name, Config: r.processConfig(), Telemetry: r.telemetry,
		Logger: r.logger.With("service", spec.name),
		Health: &service.Health{OnReady: func() { ready(statedir.Part{}) }},
	}
	if r.opts.runs(partNATS) {
		p.NATSOptions = []nats.Option{r.bus.inProcess}
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	svc, err := spec.new(ctx, p, r.load)
	if err != nil {
		return err
	}
	return svc.Run(ctx)
}

func (r *runtime) processConfig() service.Config {
	cfg := r.opts.Process
	cfg.NATSURL, cfg.DatabaseURL = service.SecretURL(r.natsURL), service.SecretURL(r.databaseURL)
	return cfg
}
