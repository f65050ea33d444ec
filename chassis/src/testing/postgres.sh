# Runs a throw-away PostgreSQL until standard input ends, which is when the test process ends, however it ends.
# Prints the folder of its socket once the server process is started. Arguments: none. postgres_tools.sh stands before it.

# Not TMPDIR: the path of a socket has about 100 characters.
dir="$(mktemp -d /tmp/cairn-pg-XXXXXX)"
server=
clean() {
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

# A linguistic default collation shows where a statement forgot COLLATE "C".
common="-D $dir/data -A trust -U postgres -E UTF8 --locale=C --no-sync --no-instructions"
initdb $common --locale-provider=icu --icu-locale=en-US >"$dir/initdb.log" 2>&1 || {
    rm -rf "$dir/data"
    initdb $common >"$dir/initdb.log" 2>&1 || {
        cat "$dir/initdb.log" >&2
        exit 1
    }
}

postgres -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c synchronous_commit=off \
    -c full_page_writes=off -c shared_buffers=32MB -c max_connections=300 -c autovacuum=off \
    -c log_min_messages=fatal </dev/null >"$dir/postgres.log" 2>&1 &
server=$!
echo "$dir"
cat >/dev/null
