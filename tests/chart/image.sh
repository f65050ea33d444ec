#!/usr/bin/env bash
# What the image would be, without an engine: tests/chart/image.sh BINARY
#
# A root with the binary, the libraries that the base of deploy/docker/Dockerfile has, and nothing else, above all no shell: mounted
# read-only, with /data and /tmp to write, as the user of the image and with the command that the Dockerfile gives.
set -euo pipefail
binary="$(realpath "$1")"
cd "$(dirname "$0")/../.."

if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
    echo "skipped: image: only root may make a root of its own"
    exit
fi
work="$(mktemp -d)"
process=""
end() {
    [ -z "$process" ] || kill -KILL "$process" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
fail() {
    echo "image: $*" >&2
    [ ! -f "$work/log" ] || tail -n 5 "$work/log" >&2
    exit 1
}

# glibc and libgcc_s: what distroless calls cc.
libraries="$(ldd "$binary" | grep -o '/[^ ]*')"
other="$(grep -vE '/(libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-[a-z0-9_-]+\.so\.[0-9])$' <<<"$libraries" || true)"
[ -z "$other" ] || fail "the base does not have $other"
mkdir -p "$work/root"/{data,tmp,proc,dev,etc/ssl/certs}
xargs -I{} cp --parents -L {} "$work/root" <<<"$libraries"
install -D -m 0755 "$binary" "$work/root/usr/local/bin/cairn"
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/"

said() { sed -nE "s/^$1 (.*)/\1/p" deploy/docker/Dockerfile | tail -n 1; }
user="$(said USER)"
words="$(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), *json.loads(sys.argv[2]), sep="\n")' "$(said ENTRYPOINT)" "$(said CMD)")"
[ "$user" = 65532:65532 ] || fail "the user is $user"
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
cp "$binary" "$work/stripped" && strip "$work/stripped"
echo "an image: read-only, uid 65532, no shell; $(($(stat -c %s "$work/stripped") / 1000000)) MB are the stripped binary"
