# What every script begins with that runs a PostgreSQL: drops root, outlives signals, and finds the server's programs.
# CAIRN_POSTGRES_SCRIPT is the whole script, with this.
set -eu

# PostgreSQL refuses to run as root.
if [ "$(id -u)" = 0 ] && [ -z "${CAIRN_POSTGRES_DROPPED:-}" ]; then
    export CAIRN_POSTGRES_DROPPED=1
    user=nobody
    id -u postgres >/dev/null 2>&1 && user=postgres
    cd /
    if command -v setpriv >/dev/null 2>&1; then
        exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups sh -c "$CAIRN_POSTGRES_SCRIPT"
    fi
    exec su -s /bin/sh "$user" -c 'sh -c "$CAIRN_POSTGRES_SCRIPT"'
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

