#!/usr/bin/env bash
# Tests deploy/dist/package.sh with a stand-in for the binary: contents, reproducibility, the unit according to systemd, and the
# installer in the available shells, against a server on loopback.
set -euo pipefail
cd "$(dirname "$0")/../.."

work="$(mktemp -d)"
server=""
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT

fail() {
    echo "packages: $*" >&2
    exit 1
}

cat >"$work/cairn" <<'END'
#!/bin/sh
case "$1" in
man) mkdir -p "$3" && echo '.TH CAIRN 1' >"$3/cairn.1" ;;
completions) echo "# $2" ;;
*) echo "cairn 0.1.0" ;;
esac
END
chmod +x "$work/cairn"
echo '{"bomFormat": "CycloneDX"}' >"$work/cairn.cdx.json"

target=x86_64-unknown-linux-gnu
for out in one two; do deploy/dist/package.sh "$work/cairn" 0.1.0 "$target" "$work/$out/v0.1.0"; done
diff -r "$work/one" "$work/two" || fail "two runs differ"
release="$work/one/v0.1.0"
(cd "$release" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums are wrong"
[ -f "$release/cairn-0.1.0-$target.cdx.json" ] || fail "the SBOM is missing"
cp "$work/cairn" "$work/bare"
deploy/dist/package.sh "$work/bare" 0.1.0 "$target" "$work/bare.out" | grep -q '^skipped: SBOM' || fail "nobody is told that there is no SBOM"
tar -tzf "$release/cairn-0.1.0-$target.tar.gz" >"$work/names"
xz -dc "$release/cairn-0.1.0-$target.tar.xz" | tar -tf - | cmp - "$work/names" || fail "the two tar balls differ"
for name in cairn LICENSE NOTICE CHANGELOG.md cairn.service man/cairn.1 completions/cairn.zsh; do
    grep -qx "cairn-0.1.0-$target/$name" "$work/names" || fail "the tar ball lacks $name"
done

package="$release/cairn_0.1.0_amd64.deb"
[ "$(dpkg-deb -f "$package" Architecture)" = amd64 ] || fail "the architecture is wrong"
dpkg-deb -x "$package" "$work/root"
for name in usr/bin/cairn usr/lib/systemd/system/cairn.service etc/cairn/cairn.env usr/share/man/man1/cairn.1.gz; do
    [ -f "$work/root/$name" ] || fail "the package lacks $name"
done
[ "$(stat -c %a "$work/root/etc/cairn/cairn.env")" = 600 ] || fail "others can read what may hold secrets"
dpkg-deb -c "$package" | awk '$2 != "root/root" { exit 1 }' || fail "not all of it belongs to root"

# Into a separate root, in which the package's scripts find a shell but no systemd.
if [ "$(id -u)" -eq 0 ]; then
    system="$work/system"
    mkdir -p "$system/var/lib/dpkg/info" "$system/var/lib/dpkg/updates" "$system/bin"
    : >"$system/var/lib/dpkg/status"
    shell="$(realpath "$(command -v dash || command -v sh)")"
    cp "$shell" "$system/bin/sh"
    ldd "$shell" | grep -o '/[^ )]*' | xargs -I{} cp --parents -L {} "$system"
    within() { PATH="$PATH:/usr/sbin:/sbin" dpkg --root="$system" --force-depends "$@" >"$work/said" 2>&1 || fail "dpkg $1: $(cat "$work/said")"; }
    state() { dpkg-query --admindir="$system/var/lib/dpkg" -f '${db:Status-Abbrev}' -W cairn 2>/dev/null | tr -d ' ' || true; }
    within --install "$package"
    [ "$(state)" = ii ] && [ -x "$system/usr/bin/cairn" ] || fail "the package is not installed: $(state)"
    echo "CAIRN_LOG=debug" >>"$system/etc/cairn/cairn.env"
    within --force-confold --install "$package"
    grep -q CAIRN_LOG=debug "$system/etc/cairn/cairn.env" || fail "an upgrade takes the configuration away"
    within --remove cairn
    [ ! -e "$system/usr/bin/cairn" ] && [ -f "$system/etc/cairn/cairn.env" ] || fail "removing is not purging"
    within --purge cairn
    left="$(find "$system" -type f -path '*cairn*' -not -path '*/var/lib/dpkg/*' -not -path '*/var/log/*')"
    [ -z "$left" ] || fail "purged, and still there: $left"
else
    echo "skipped: installing the package: only root may"
fi

if command -v systemd-analyze >/dev/null; then
    # The program must be where the package puts it.
    sed "s#/usr/bin/cairn#$work/root/usr/bin/cairn#" deploy/dist/cairn.service >"$work/cairn.service"
    said="$(systemd-analyze verify --man=no "$work/cairn.service" 2>&1 | grep -F cairn.service || true)"
    [ -z "$said" ] || fail "systemd-analyze verify: $said"
    exposure="$(systemd-analyze security --offline=true --threshold=20 "$work/cairn.service" 2>&1 | tail -n 1)" ||
        fail "the unit is too exposed: $exposure"
else
    echo "skipped: systemd-analyze: not installed"
fi

: >"$work/log"
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/one" 0 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 50); do
    port="$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/log")"
    [ -z "$port" ] || break
    sleep 0.1
done
export CAIRN_RELEASES="http://127.0.0.1:$port"
# A release that only has the world-readable one.
gzipped="$work/one/v0.0.9"
deploy/dist/package.sh "$work/cairn" 0.0.9 "$target" "$gzipped"
rm "$gzipped/cairn-0.0.9-$target.tar.xz"
sed -i '/\.tar\.xz$/d' "$gzipped/SHA256SUMS"
for shell in dash "busybox sh" bash; do
    command -v "${shell%% *}" >/dev/null || continue
    for version in 0.1.0 0.0.9; do
        rm -rf "${work:?}/bin"
        # shellcheck disable=SC2086 # "busybox sh" is two words
        $shell "$release/install.sh" --version "$version" --to "$work/bin" --target "$target" >"$work/said" 2>&1 ||
            fail "$shell: $(cat "$work/said")"
        [ "$("$work/bin/cairn" --version)" = "cairn 0.1.0" ] || fail "$shell: it is not installed"
    done
done
for fetched in 'v0\.1\.0/.*\.tar\.xz' 'v0\.0\.9/.*\.tar\.gz'; do
    grep -q "GET /$fetched" "$work/log" || fail "$fetched was not fetched"
done

for one in "0.1.0 $release/cairn-0.1.0-$target.tar.xz" "0.0.9 $gzipped/cairn-0.0.9-$target.tar.gz"; do
    echo changed >>"${one#* }"
    rm -rf "${work:?}/bin"
    if sh "$release/install.sh" --version "${one%% *}" --to "$work/bin" --target "$target" >"$work/said" 2>&1; then fail "a wrong checksum was taken"; fi
    grep -q "the checksum .* is wrong" "$work/said" || fail "a wrong checksum is told as: $(cat "$work/said")"
    [ ! -e "$work/bin/cairn" ] || fail "something was installed all the same"
done
echo "a release: tar ball, package, unit, installer"
