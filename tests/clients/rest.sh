#!/usr/bin/env bash
# Tests the HTTP API by its OpenAPI documents, against a temporary server: rest.sh CAIRN_BINARY [SECONDS]. schemathesis generates requests
# from the schemas and from earlier responses, as callers with several roles and scopes. It is installed into a temporary folder; if that
# fails, the test is reported as skipped. Nothing is left behind.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
cairn=$(realpath "${1:-target/debug/cairn}")
seconds=${2:-80}

work=$(mktemp -d)
server=
clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

if ! python3 -m venv "$work/venv" >"$work/pip.log" 2>&1; then
    echo "skipped: requests by schema: Python cannot make an environment: $(tail -n 1 "$work/pip.log")"
    exit
fi
if ! timeout 240 "$work/venv/bin/pip" install -q schemathesis==4.32.5 >"$work/pip.log" 2>&1; then
    echo "skipped: requests by schema: pip cannot fetch schemathesis: $(tail -n 1 "$work/pip.log")"
    exit
fi

"$cairn" up --data "$work/data" --listen 127.0.0.1:0 --quiet >"$work/cairn.log" 2>&1 &
server=$!
base_url() { sed -n 's/.*"baseUrl": *"\([^"]*\)".*/\1/p' "$work/data/bootstrap.json"; }
ready=
# The address is written before the server listens there.
for _ in $(seq 1 240); do
    [ -s "$work/data/bootstrap.json" ] && "$cairn" health --url "$(base_url)" >/dev/null 2>&1 && ready=1 && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.5
done
if [ -z "$ready" ]; then
    cat "$work/cairn.log"
    echo "failed: $cairn does not start"
    exit 1
fi

cd "$work"
"$work/venv/bin/python" "$here/rest_flow.py" "$work/data/bootstrap.json" "$work/venv/bin/schemathesis" "$seconds"
