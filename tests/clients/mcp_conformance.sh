#!/bin/sh
# The conformance suite's scenarios for MCP servers: mcp_conformance.sh BOOTSTRAP FOLDER_WITH_NODE_MODULES
# Both frozen sets of requirements, with the known failures in mcp_baseline_*.yml, and the skills extension.
set -eu
here=$(dirname "$(realpath "$0")")
bootstrap=$(realpath "$1")
folder=$(realpath "${2:-.}")
suite=$folder/node_modules/@modelcontextprotocol/conformance/dist/index.js
node=${NODE:-node}
if [ ! -f "$suite" ]; then
  echo "skipped: @modelcontextprotocol/conformance is not installed in $folder"
  exit 0
fi

out=$(mktemp -d)
proxy=
clean_up() {
  [ -z "$proxy" ] || kill "$proxy" 2>/dev/null || true
  rm -rf "$out"
}
trap clean_up EXIT
"$node" "$here/bearer_proxy.mjs" "$bootstrap" >"$out/address" &
proxy=$!
for _ in $(seq 1 120); do
  [ -s "$out/address" ] && break
  kill -0 "$proxy" 2>/dev/null || break
  sleep 0.5
done
url=$(cat "$out/address")/mcp

# The output is long, so it is printed completely only on failure.
check() {
  title=$1
  shift
  rm -rf "$out/results"
  if "$node" "$suite" server --url "$url" -o "$out/results" --timeout 120000 "$@" >"$out/log" 2>&1; then
    echo "passed: $title"
  else
    cat "$out/log"
    echo "failed: $title"
    return 1
  fi
}

for revision in 2025-11-25 2026-07-28; do
  check "requirements of $revision" --requirements "$revision" \
    --expected-failures "$here/mcp_baseline_$revision.yml"
done
# Extensions belong to no set of requirements, so their scenarios need --force.
for part in enumeration manifest directory; do
  check "skills: $part" --scenario "sep-2640-skills-$part" --spec-version 2026-07-28 --force
  if grep -q '"status": *"SKIPPED"' -r "$out/results" --include=checks.json; then
    cat "$out/log"
    echo "failed: skills: $part: a check was skipped"
    exit 1
  fi
done
