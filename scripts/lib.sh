# Shared by the scripts here; sourced, not run.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# What set-up installs lives under the state directory: WEIR_HOME, else /var/lib/weir for root (a checkout
# under root's home is closed to the user that Postgres must run as), else .weir in the checkout.
if [ -n "${WEIR_HOME:-}" ]; then
	STATE=$WEIR_HOME
elif [ "$(id -u)" = 0 ]; then
	STATE=/var/lib/weir
else
	STATE=$ROOT/.weir
fi
case $STATE in /*) ;; *) STATE=$PWD/$STATE ;; esac
SETUP_JSON=$STATE/setup.json

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi | cut -d' ' -f1
}

# setting KEY: a path from setup.json, which scripts/setup writes with one key a line.
setting() {
	sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$SETUP_JSON"
}

# postgres_user: the account that runs Postgres when we are root, which Postgres refuses to be.
postgres_user() {
	if id -u postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi
}

# as_postgres COMMAND...: runs it with a bare environment, as an unprivileged user when we are root.
as_postgres() {
	local bare=(env -i "PATH=/usr/local/bin:/usr/bin:/bin" LC_ALL=C HOME=/ TZ=UTC)
	if [ "$(id -u)" != 0 ]; then
		"${bare[@]}" "$@"
	elif command -v runuser >/dev/null; then
		runuser -u "$(postgres_user)" -- "${bare[@]}" "$@"
	else
		su -s /bin/sh "$(postgres_user)" -c 'exec "$0" "$@"' -- "${bare[@]}" "$@"
	fi
}

# testdb_dir: where this checkout's test clusters live.
testdb_dir() { echo "$STATE/testdb-$(printf '%s' "$ROOT" | cksum | cut -d' ' -f1)"; }

# use_test_clusters: exports the addresses of the servers to test on. They are TEST_DATABASE_URL (and
# TEST_DATABASE_URL_16) when set, else the private clusters, which are stopped when the last script that uses
# them ends (KEEP=1 leaves them). Holds descriptor 8: close it (8>&-) for what may outlive the script.
use_test_clusters() {
	unset DATABASE_URL NATS_URL EMBEDDING_BASE_URL # never a user's own servers
	WEIR_MODEL_CACHE=$(setting cache)
	export WEIR_MODEL_CACHE WEIR_HOME="$STATE" WEIR_SETUP="$SETUP_JSON"
	if [ -z "${TEST_DATABASE_URL:-}" ]; then
		local lines owner=--for-run
		unset TEST_DATABASE_URL_16
		[ -z "${KEEP:-}" ] || owner=
		exec 8>"$(testdb_dir).users"
		"$(setting python)" -c 'import fcntl; fcntl.flock(8, fcntl.LOCK_SH)'
		trap leave_test_clusters EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
		# shellcheck disable=SC2086 # no argument when empty
		lines=$("$ROOT/scripts/testdb" start $owner 8>&-)
		eval "$lines"
	fi
	export TEST_DATABASE_URL TEST_DATABASE_URL_16="${TEST_DATABASE_URL_16:-}"
}

leave_test_clusters() {
	# An exclusive lock is to be had only when no other script uses the clusters.
	if "$(setting python)" -c 'import fcntl; fcntl.flock(8, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
		"$ROOT/scripts/testdb" stop --for-run 8>&-
	fi
}

# modules: the folders of the workspace's modules.
modules() { (cd "$ROOT" && go list -m -f '{{.Dir}}'); }

# packages: a pattern for all packages of each module.
packages() { modules | sed 's|$|/...|'; }
