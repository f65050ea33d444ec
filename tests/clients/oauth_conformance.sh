#!/bin/sh
# The conformance suite's scenarios for authorization servers: oauth_conformance.sh BOOTSTRAP FOLDER_WITH_NODE_MODULES
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
base=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["baseUrl"])' "$bootstrap")
client=$(curl -sf "$base/oauth/register" -H 'Content-Type: application/json' -d '{
  "client_name": "Conformance", "redirect_uris": ["http://127.0.0.1:3000/callback"],
  "token_endpoint_auth_method": "none"}')
client_id=$(printf '%s' "$client" | python3 -c 'import json,sys; print(json.load(sys.stdin)["client_id"])')

out=$(mktemp -d)
: >"$out/log"
trap 'rm -rf "$out"' EXIT
"$node" "$suite" authorization --url "$base" --client-id "$client_id" \
  --resource "$base/mcp" --port 3000 -o "$out/results" >"$out/log" 2>&1 &
suite_id=$!
address=
for _ in $(seq 1 120); do
  address=$(grep -m1 -oE 'http[^ ]*authorize\?[^ ]*' "$out/log" || true)
  [ -n "$address" ] && break
  kill -0 "$suite_id" 2>/dev/null || break
  sleep 0.5
done
[ -z "$address" ] || python3 "$here/person.py" "$bootstrap" "$address"
status=0
wait "$suite_id" || status=$?
cat "$out/log"
exit "$status"
