# Runs a PostgreSQL that loses nothing when it is killed, and starts it again whenever it has ended, until standard input ends,
# which is when the test process ends, however it ends. Prints the folder of its socket once the first one is started.
# postgres_tools.sh of the chassis stands before it.

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
