package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// confName is the file with our settings, included by postgresql.conf. What an administrator sets with
// ALTER SYSTEM wins over it.
const confName = "weir.conf"

// maxSocketDir bounds the path of the socket directory: the name of the socket follows it and the
// kernel's limit for both is 107 bytes.
const maxSocketDir = 90

func (c *Cluster) writeConf() error {
	path := filepath.Join(c.data(), confName)
	if err := os.WriteFile(path, []byte(c.conf(memoryBytes())), 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := c.owner.give(path); err != nil {
		return err
	}
	return includeOnce(filepath.Join(c.data(), "postgresql.conf"))
}

func includeOnce(path string) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	line := "include_if_exists = '" + confName + "'"
	if strings.Contains(string(body), line) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("add to settings: %w", err)
	}
	_, err = f.WriteString("\n" + line + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("add to settings: %w", err)
	}
	return nil
}

func (c *Cluster) conf(memory int64) string {
	const mb = 1 << 20
	shared := min(max(memory/8, 64*mb), 2048*mb)
	maintenance := min(max(memory/32, 64*mb), 1024*mb)
	cache := max(memory/2, 256*mb)
	socket := filepath.Join(c.cfg.Dir, "socket")
	if len(socket) > maxSocketDir {
		socket = "" // the path would be cut; TCP on the loopback does everything
	}
	settings := []struct{ name, value string }{
		{"listen_addresses", "127.0.0.1"},
		{"port", strconv.Itoa(c.port)},
		{"unix_socket_directories", socket},
		{"password_encryption", "scram-sha-256"},
		{"max_connections", "100"},
		{"shared_buffers", kb(shared)},
		{"effective_cache_size", kb(cache)},
		{"maintenance_work_mem", kb(maintenance)},
		{"work_mem", "16MB"},
		{"max_wal_size", "2GB"},
		{"checkpoint_completion_target", "0.9"},
		{"random_page_cost", "1.1"},
		{"max_worker_processes", strconv.Itoa(max(8, runtime.NumCPU()))},
		{"log_min_messages", "warning"},
		{"log_line_prefix", "%m [%p] %a "},
		{"jit", "off"},
	}
	var b strings.Builder
	b.WriteString("# Written at every start by weir. Use ALTER SYSTEM to override.\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "%s = '%s'\n", s.name, strings.ReplaceAll(s.value, "'", "''"))
	}
	return b.String()
}

func kb(bytes int64) string { return strconv.FormatInt(bytes>>10, 10) + "kB" }

// memoryBytes is the memory of the machine, or of the container when that is less; a modest guess where the system does not
// say.
func memoryBytes() int64 {
	const guess = 2 << 30
	total := int64(guess)
	if body, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(body)); len(fields) > 1 && fields[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				total = n << 10
			}
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if body, err := os.ReadFile(path); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64); err == nil && n > 0 {
				total = min(total, n)
			}
		}
	}
	return total
}

// major asks the program for its major version: "postgres (PostgreSQL) 18.4".
func (c *Cluster) major(ctx context.Context) (int, error) {
	out, err := c.owner.run(ctx, c.cfg.Dir, filepath.Join(c.cfg.Bin, "postgres"), "--version")
	if err != nil {
		return 0, fmt.Errorf("ask postgres for its version: %w: %s", err, out)
	}
	_, version, _ := strings.Cut(out, ") ")
	digits, _, _ := strings.Cut(strings.TrimSpace(version), ".")
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("ask postgres for its version: %q is not understood", out)
	}
	return major, nil
}

// checkMajor refuses programs of another major version than the one that made the cluster.
func (c *Cluster) checkMajor(ctx context.Context) error {
	body, err := os.ReadFile(filepath.Join(c.data(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("read version of the cluster: %w", err)
	}
	major, err := c.major(ctx)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(body)); got != strconv.Itoa(major) {
		return fmt.Errorf("the cluster in %s is of Postgres %s, the programs in %s are %d: "+
			"use programs of the same version, or dump and restore", c.data(), got, c.cfg.Bin, major)
	}
	return nil
}

// maxLogBytes is the size at which the log becomes postgres.log.1 at a start.
const maxLogBytes = 16 << 20

func (c *Cluster) prepareLog() error {
	if info, err := os.Stat(c.logPath()); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(c.logPath(), c.logPath()+".1"); err != nil {
			return fmt.Errorf("rotate log: %w", err)
		}
	}
	f, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	return c.owner.give(c.logPath())
}

// logTail is the end of the log, for an error.
func (c *Cluster) logTail() string {
	body, err := os.ReadFile(c.logPath())
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	const most = 1000
	return strings.TrimSpace(string(body[max(0, len(body)-most):]))
}
