// Package localpg runs a private Postgres cluster from ready programs in a directory. It creates the
// cluster once, starts and stops it, and takes over one that still runs. It never deletes a cluster.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// User and Database are the names in every cluster.
const (
	User     = "weir"
	Database = "weir"
)

// DefaultPort is the port tried first; not 5432, which is likely to be somebody else's.
const DefaultPort = 54329

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
)

// Config describes a cluster. Bin, Dir and Password are required.
type Config struct {
	// Bin is the directory of initdb, pg_ctl and postgres.
	Bin string
	// Dir holds the cluster (data), its sockets and its log; it is created.
	Dir string
	// Password of User. It is set when the cluster is created and must stay the same.
	Password string
	// Port on 127.0.0.1. It is used by a fresh start, an adopted cluster keeps its own.
	Port int
	// Logger gets what happens; required.
	Logger *slog.Logger
}

// Cluster is a running Postgres.
type Cluster struct {
	cfg     Config
	owner   owner
	pid     int
	port    int
	adopted bool
}

// ErrMissingProgram is returned when Bin lacks a program.
var ErrMissingProgram = errors.New("postgres program is missing")

// Start makes sure that a Postgres runs on the cluster in cfg.Dir and accepts connections to Database.
// A Postgres that a killed process left running on the same data is taken over as it is.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c, err := prepare(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("prepare postgres: %w", err)
	}
	if c.adopt(ctx) {
		cfg.Logger.Info("postgres still runs and is taken over", "pid", c.pid, "port", c.port)
		return c, nil
	}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return c, nil
}

// StopLeft stops a Postgres that a killed process left running in dir, and returns its pid, 0 when
// there was none.
func StopLeft(ctx context.Context, cfg Config) (int, error) {
	if _, err := os.Stat(filepath.Join(cfg.Dir, "data", "PG_VERSION")); err != nil {
		return 0, nil // no cluster, so nothing runs on it
	}
	owner, err := findOwner()
	if err != nil {
		return 0, err
	}
	c := &Cluster{cfg: cfg, owner: owner}
	file, running := c.runningPostmaster()
	if !running {
		return 0, nil
	}
	c.pid, c.port = file.pid, file.port
	return c.pid, c.Stop(ctx)
}

func prepare(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := checkPrograms(cfg.Bin); err != nil {
		return nil, err
	}
	owner, err := findOwner()
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, owner: owner, port: cfg.Port}
	if c.port == 0 {
		c.port = DefaultPort
	}
	if err := c.makeDirs(); err != nil {
		return nil, err
	}
	if err := owner.canRead(cfg.Bin, cfg.Dir); err != nil {
		return nil, err
	}
	return c, c.create(ctx)
}

func checkPrograms(bin string) error {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		info, err := os.Stat(filepath.Join(bin, name))
		if err != nil || info.Mode()&0o111 == 0 {
			return fmt.Errorf("%w: no executable %s in %q; run scripts/setup", ErrMissingProgram, name, bin)
		}
	}
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.cfg.Dir, "data") }

func (c *Cluster) logPath() string { return filepath.Join(c.cfg.Dir, "postgres.log") }

func (c *Cluster) makeDirs() error {
	mode := fs.FileMode(0o700)
	if c.owner.other() {
		mode = 0o711 // the owner of the cluster must get through
	}
	if err := os.MkdirAll(c.cfg.Dir, mode); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	for _, dir := range []string{filepath.Join(c.cfg.Dir, "socket"), filepath.Join(c.cfg.Dir, "work")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := c.owner.give(dir); err != nil {
			return err
		}
	}
	return nil
}

// create makes the cluster unless there is one. initdb works beside the final place, so a cluster is
// there whole or not at all; what an interrupted initdb left has never been a cluster.
func (c *Cluster) create(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(c.data(), "PG_VERSION")); err == nil {
		return c.checkMajor(ctx)
	}
	if entries, err := os.ReadDir(c.data()); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty and not a cluster; move it away", c.data())
	}
	work := filepath.Join(c.cfg.Dir, "work")
	fresh := filepath.Join(work, "data")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear interrupted initdb: %w", err)
	}
	pwfile := filepath.Join(work, "password")
	if err := os.WriteFile(pwfile, []byte(c.cfg.Password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	defer os.Remove(pwfile)
	if err := c.owner.give(pwfile); err != nil {
		return err
	}
	major, err := c.major(ctx)
	if err != nil {
		return err
	}
	c.cfg.Logger.Info("creating postgres cluster", "dir", c.data(), "version", major, "user", c.owner.name)
	if err := c.initdb(ctx, work, fresh, pwfile, major); err != nil {
		return err
	}
	if err := os.Rename(fresh, c.data()); err != nil {
		return fmt.Errorf("put cluster in place: %w", err)
	}
	return nil
}

func (c *Cluster) initdb(ctx context.Context, work, fresh, pwfile string, major int) error {
	var err error
	for _, locale := range locales(major) {
		args := append([]string{
			"-D", fresh, "-U", User, "--pwfile", pwfile,
			"--auth-host=scram-sha-256", "--auth-local=scram-sha-256", "-E", "UTF8",
		}, locale...)
		var out string
		if out, err = c.owner.run(ctx, work, filepath.Join(c.cfg.Bin, "initdb"), args...); err == nil {
			return nil
		}
		err = fmt.Errorf("initdb: %w: %s", err, out)
		if !strings.Contains(out, "locale") {
			return err
		}
	}
	return err
}

// locales are the ways to get byte order and, where the version has a provider of its own for it,
// Unicode character classes; the last works on machines without C.UTF-8.
func locales(major int) [][]string {
	if major < 17 {
		return [][]string{{"--locale=C"}}
	}
	builtin := []string{"--locale-provider=builtin", "--builtin-locale=C.UTF-8"}
	return [][]string{append(builtin[:2:2], "--locale=C.UTF-8"), append(builtin[:2:2], "--locale=C")}
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.disarmStalePID(); err != nil {
		return err
	}
	if err := c.writeConf(); err != nil {
		return err
	}
	if err := c.prepareLog(); err != nil {
		return err
	}
	out, err := c.owner.run(ctx, c.data(), filepath.Join(c.cfg.Bin, "pg_ctl"), "start", "-w", "-s",
		"-D", c.data(), "-l", c.logPath(), "-t", strconv.Itoa(int(startTimeout.Seconds())))
	if err != nil {
		return fmt.Errorf("pg_ctl: %w: %s %s", err, out, c.logTail())
	}
	file, running := c.runningPostmaster()
	if !running {
		return errors.New("pg_ctl succeeded and no server runs")
	}
	c.pid, c.port = file.pid, file.port
	return c.ensureDatabase(ctx)
}

// adopt takes over a Postgres that runs on our data and lets us in.
func (c *Cluster) adopt(ctx context.Context) bool {
	file, running := c.runningPostmaster()
	if !running {
		return false
	}
	wanted := c.port
	c.pid, c.port = file.pid, file.port
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := c.ensureDatabase(ctx)
	if err == nil {
		c.adopted = true
		return true
	}
	c.cfg.Logger.Warn("a postgres runs on our data and does not let us in: restarting it", "pid", c.pid, "err", err)
	if err := c.Stop(context.WithoutCancel(ctx)); err != nil {
		c.cfg.Logger.Error("cannot stop it", "pid", c.pid, "err", err)
	}
	c.port = wanted
	return false
}

// ensureDatabase creates Database unless it is there, waiting while the server starts.
func (c *Cluster) ensureDatabase(ctx context.Context) error {
	conn, err := c.connectWhenUp(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", Database).Scan(&there)
	if err != nil {
		return fmt.Errorf("look for database: %w", err)
	}
	if there {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{Database}.Sanitize()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func (c *Cluster) connectWhenUp(ctx context.Context) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		if err == nil || !startingUp(err) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// URL is the address of Database with its password.
func (c *Cluster) URL() string { return URL(c.cfg.Password, c.port) }

// URL is the address of Database in a cluster with that password and port.
func URL(password string, port int) string { return address(password, port, Database) }

func (c *Cluster) url(database string) string { return address(c.cfg.Password, c.port, database) }

func address(password string, port int, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(User, password), Path: "/" + database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), RawQuery: "sslmode=disable",
	}
	return u.String()
}

// PID is the process id of the postmaster.
func (c *Cluster) PID() int { return c.pid }

// Port is where it listens on 127.0.0.1.
func (c *Cluster) Port() int { return c.port }

// Adopted tells whether it ran already.
func (c *Cluster) Adopted() bool { return c.adopted }

// Running tells whether the postmaster still lives.
func (c *Cluster) Running() bool {
	file, running := c.runningPostmaster()
	return running && file.pid == c.pid
}

// Stop ends open transactions and shuts down in an orderly way, and waits for it; only a server that does not
// manage that in a minute is stopped at once and recovers at its next start.
func (c *Cluster) Stop(ctx context.Context) error {
	if _, running := c.runningPostmaster(); !running {
		return nil
	}
	var problems []error
	for _, mode := range []string{"fast", "immediate"} {
		out, err := c.owner.run(ctx, c.data(), filepath.Join(c.cfg.Bin, "pg_ctl"), "stop", "-s", "-w", "-m", mode,
			"-D", c.data(), "-t", strconv.Itoa(int(stopTimeout.Seconds())))
		if _, running := c.runningPostmaster(); err == nil || !running {
			return nil
		}
		problems = append(problems, fmt.Errorf("stop postgres (%s): %w: %s", mode, err, out))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(problems...)
}
