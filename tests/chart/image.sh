#!/usr/bin/env bash
# Builds and checks the image of a release, without a container engine: tests/chart/image.sh BINARY
#
# deploy/docker/image.py builds it from the stripped binary and the libraries that it loads on this machine; the result must match
# tests/chart/layout.py. Unpacked and mounted read-only, with writable /data and /tmp, it runs as its user with its command.
#
# A release binary is compressed as in a release, which takes a minute or two of CPU, and must not exceed the size limit; a debug
# binary is compressed fast, and the check of its size is reported as `skipped`.
set -euo pipefail
binary="$(realpath "$1")"
cd "$(dirname "$0")/../.."
LIMIT=45000000

if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
    echo "skipped: image: only root may make a root of its own"
    exit
fi
if ! command -v zstd >/dev/null; then
    echo "skipped: image: zstd is not installed"
    exit
fi
work="$(mktemp -d)"
process=""
end() {
    # The child first: it has another user id, so PR_SET_PDEATHSIG does not end it with its parent (prctl(2)).
    [ -z "$process" ] || { pkill -KILL -P "$process"; kill -KILL "$process"; } 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
fail() {
    echo "image: $*" >&2
    [ ! -f "$work/log" ] || tail -n 5 "$work/log" >&2
    exit 1
}

strip -o "$work/cairn" "$binary"
python3 tests/chart/image_base.py "$work/cairn" "$work/base" || fail "there is no base for it"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
architecture="$(python3 -c 'import sys; sys.path.insert(0, "tests/chart"); import image_base; print(image_base.here())')"
level=(--level 1) limit=()
if [ "$("$binary" version --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["debug"])')" = False ]; then
    level=() limit=(--limit "$LIMIT")
fi
deploy/docker/image.py --base "$work/base" --binary "$architecture=$work/cairn" --version "$version" --out "$work/layout" "${level[@]}" \
    >/dev/null || fail "it cannot be made"
mkdir "$work/root"
size="$(python3 tests/chart/layout.py "$work/layout" "${limit[@]}" --unpack "$architecture" "$work/root")" || fail "it is not what it has to be"
[ -n "${limit[*]}" ] || echo "skipped: the size of the image: the binary is for debugging"
mkdir -p "$work/root"/{proc,dev}

said() { sed -nE "s/^$1 (.*)/\1/p" deploy/docker/Dockerfile | tail -n 1; }
words="$(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), *json.loads(sys.argv[2]), sep="\n")' "$(said ENTRYPOINT)" "$(said CMD)")"
read -r public admin < <(python3 -c '
import socket
free = [socket.socket() for _ in range(2)]
for one in free:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in free))')
mapfile -t command < <(sed "s/^0\.0\.0\.0:8700$/127.0.0.1:$public/; s/^0\.0\.0\.0:9090$/127.0.0.1:$admin/" <<<"$words")

# shellcheck disable=SC2016 # for the inner shell
unshare --mount --pid --fork --kill-child bash -c '
    set -euo pipefail
    root="$1"; shift
    mount --bind "$root" "$root"
    for name in data tmp; do mount -t tmpfs -o mode=0700,uid=65532,gid=65532 none "$root/$name"; done
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=0755 none "$root/dev"
    for name in null urandom; do : >"$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
    mount -o remount,bind,ro "$root"
    if (: >"$root/usr/here") 2>/dev/null; then echo "the root can be written to" >&2; exit 1; fi
    exec env -i CAIRN_DATA=/data CAIRN_BASE_URL=http://localhost:8700 \
        "$(command -v chroot)" --userspec=65532:65532 --groups= "$root" "$@"
' _ "$work/root" "${command[@]}" >"$work/log" 2>&1 &
process=$!
disown
for _ in $(seq 120); do
    kill -0 "$process" 2>/dev/null || fail "it has ended"
    if curl -sf "http://127.0.0.1:$admin/readyz" >/dev/null; then break; fi
    sleep 0.5
done
curl -sf "http://127.0.0.1:$admin/readyz" >/dev/null || fail "it does not get ready"
curl -sf "http://127.0.0.1:$public/healthz" >/dev/null || fail "the public address does not answer"
owner="$(stat -c %u "/proc/$(pgrep -P "$process" | head -n 1)" 2>/dev/null || true)"
[ "$owner" = 65532 ] || fail "it runs as ${owner:-nobody}"
! grep -qiE 'password|cairn_[0-9A-Za-z]{46}' "$work/log" || fail "the log holds a secret"
echo "an image: read-only, uid 65532, no shell; $size; $(($(stat -c %s "$work/cairn") / 1000000)) MB are the stripped binary"
