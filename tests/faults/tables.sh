# Runs a PostgreSQL that loses nothing when it is killed, and starts it again whenever it has ended, until standard input ends,
# which is when the test process ends, however it ends. Prints the folder of its socket once the first one is started.
set -eu

# PostgreSQL refuses to run as root.
if [ "$(id -u)" = 0 ] && [ -z "${CAIRN_TABLES_DROPPED:-}" ]; then
    export CAIRN_TABLES_DROPPED=1
    user=nobody
    id -u postgres >/dev/null 2>&1 && user=postgres
    cd /
    if command -v setpriv >/dev/null 2>&1; then
        exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups sh -c "$CAIRN_TABLES_SCRIPT"
    fi
    exec su -s /bin/sh "$user" -c 'sh -c "$CAIRN_TABLES_SCRIPT"'
fi

# A signal to the whole session (Ctrl-C) must not end this script before it has cleaned up.
trap '' INT TERM HUP QUIT PIPE

for candidate in /usr/lib/postgresql/*/bin /usr/local/bin /opt/homebrew/bin /usr/local/pgsql/bin; do
    if ! command -v initdb >/dev/null 2>&1 && [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ]; then
        PATH="$candidate:$PATH"
    fi
done
command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1 || {
    echo "initdb and postgres are not installed" >&2
    exit 1
}

# Not TMPDIR: the path of a socket has about 100 characters.
dir="$(mktemp -d /tmp/cairn-tables-XXXXXX)"
initdb -D "$dir/data" -A trust -U postgres -E UTF8 --locale=C --no-sync --no-instructions >"$dir/initdb.log" 2>&1 || {
    cat "$dir/initdb.log" >&2
    rm -rf "$dir"
    exit 1
}

# What is acknowledged is on the disk: `fsync` and `synchronous_commit` stay on, as in operation.
(
    while [ ! -e "$dir/over" ]; do
        LD_PRELOAD="${CAIRN_TABLES_LD_PRELOAD:-}" FAULT_ORDERS="${CAIRN_TABLES_FAULT_ORDERS:-}" \
            postgres -D "$dir/data" -k "$dir" -c listen_addresses= -c shared_buffers=32MB -c max_connections=300 \
            -c log_min_messages=fatal </dev/null >>"$dir/postgres.log" 2>&1 || true
        # What the one before has left may still be about to end.
        sleep 0.2
    done
) &
supervisor=$!
echo "$dir"
cat >/dev/null
: >"$dir/over"
# The first line of the file is the process of the server. It may have ended by itself, or be about to write the file.
while kill -0 "$supervisor" 2>/dev/null; do
    kill -QUIT "$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null)" 2>/dev/null || true
    sleep 0.1
done
rm -rf "$dir"
