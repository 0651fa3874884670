package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner is the user that Postgres runs as: ourselves, or as root somebody without privileges, because
// Postgres refuses root.
type owner struct {
	name     string
	uid, gid uint32
	switches bool // we are root and become the owner
}

// findOwner looks for the user postgres, then nobody. Postgres asks the system for its user's name, so
// a bare number would not do.
func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{name: "current user"}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return owner{name: name, uid: uint32(uid), gid: uint32(gid), switches: true}, nil
		}
	}
	return owner{}, errors.New("postgres does not run as root, and there is neither a user postgres nor nobody to run it as")
}

func (o owner) other() bool { return o.switches }

// give makes the owner the owner of path.
func (o owner) give(path string) error {
	if !o.switches {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("hand over to user %s: %w", o.name, err)
	}
	return nil
}

// canRead checks that the owner gets through every directory above paths: what lies under root's home is
// closed to it, and Postgres would only say "permission denied".
func (o owner) canRead(paths ...string) error {
	if !o.switches {
		return nil
	}
	for _, path := range paths {
		for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return fmt.Errorf("look at %s: %w", dir, err)
			}
			if !o.passes(info) {
				return fmt.Errorf("user %s, which postgres runs as because we are root, cannot enter %s: "+
					"set WEIR_HOME to a directory it can reach, such as /var/lib/weir, or chmod o+x it", o.name, dir)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

func (o owner) passes(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case ok && st.Uid == o.uid:
		return mode&0o100 != 0
	case ok && st.Gid == o.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// run executes a program as the owner with a small environment, and returns what it wrote.
func (o owner) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=" + dir}
	if tz := os.Getenv("TZ"); tz != "" {
		cmd.Env = append(cmd.Env, "TZ="+tz)
	}
	// A group of its own: an interrupt typed at the terminal is ours to handle, not Postgres's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if o.switches {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
