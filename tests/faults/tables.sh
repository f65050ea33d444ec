# Runs a durable PostgreSQL, and restarts it whenever it exits, until the end of standard input, that is until the test process
# exits for whatever reason. Prints the folder of its socket after the first start. postgres_tools.sh of the chassis is prepended
# to this script.

# Not TMPDIR: the path of a Unix socket is limited to about 100 characters.
dir="$(mktemp -d /tmp/cairn-tables-XXXXXX)"
initdb -D "$dir/data" -A trust -U postgres -E UTF8 --locale=C --no-sync --no-instructions >"$dir/initdb.log" 2>&1 || {
    cat "$dir/initdb.log" >&2
    rm -rf "$dir"
    exit 1
}

# Acknowledged writes are durable: `fsync` and `synchronous_commit` stay on, as in production.
(
    while [ ! -e "$dir/over" ]; do
        LD_PRELOAD="${CAIRN_TABLES_LD_PRELOAD:-}" FAULT_ORDERS="${CAIRN_TABLES_FAULT_ORDERS:-}" \
            postgres -D "$dir/data" -k "$dir" -c listen_addresses= -c shared_buffers=32MB -c max_connections=300 \
            -c log_min_messages=fatal </dev/null >>"$dir/postgres.log" 2>&1 || true
        # Children of the previous server may still be exiting.
        sleep 0.2
    done
) &
supervisor=$!
echo "$dir"
cat >/dev/null
: >"$dir/over"
# The first line of the file is the server's pid. The server may have exited by itself, or not have written the file yet.
while kill -0 "$supervisor" 2>/dev/null; do
    kill -QUIT "$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null)" 2>/dev/null || true
    sleep 0.1
done
rm -rf "$dir"
