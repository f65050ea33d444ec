# Runs a throw-away Redis until standard input ends, which is when the test ends, however it ends.
# Prints its folder, where the socket is `s`, and its process id. Arguments: the TCP port (0: none), and the port of the
# cluster bus (0: no cluster). Each line of the input ends it and starts it again where it was, with nothing in it; the new process
# id is printed.
set -eu
command -v redis-server >/dev/null 2>&1 || {
    echo "redis-server is not installed" >&2
    exit 1
}

# A signal to the whole session (Ctrl-C) must not end this script before it has cleaned up.
trap '' INT TERM HUP QUIT PIPE

# Not TMPDIR: the path of a socket has about 100 characters.
dir="$(mktemp -d /tmp/cairn-redis-XXXXXX)"
server=
clean() {
    if [ -n "$server" ]; then
        # It may have been stopped, and it has nothing to keep.
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

set -- "$1" "$2" --bind 127.0.0.1 --port "$1" --unixsocket "$dir/s" --dir "$dir" --save '' --appendonly no
if [ "$2" != 0 ]; then
    set -- "$@" --cluster-enabled yes --cluster-config-file nodes.conf --cluster-port "$2"
fi
shift 2
start() {
    redis-server "$@" </dev/null >>"$dir/redis.log" 2>&1 &
    server=$!
}
start "$@"
echo "$dir $server"
while read -r _; do
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    start "$@"
    echo "$server"
done
