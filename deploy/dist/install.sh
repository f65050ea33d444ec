#!/bin/sh
# Installs the program `cairn` from a release, after its checksum.
#
#   sh install.sh [--version VERSION] [--to FOLDER] [--target TARGET]
#
# FOLDER is ~/.local/bin when not said, and no root is needed for it. CAIRN_RELEASES is the address that has a folder for
# each version. docs/RELEASES.md tells how SHA256SUMS itself is signed.
set -eu

releases="${CAIRN_RELEASES:-@RELEASES@}"
version="@VERSION@"
folder="${HOME:-/tmp}/.local/bin"
target=""

fail() {
    echo "install: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
    --version) version="${2:?--version takes a version}" && shift 2 ;;
    --to) folder="${2:?--to takes a folder}" && shift 2 ;;
    --target) target="${2:?--target takes a target}" && shift 2 ;;
    -h | --help) sed -n '2,7p' "$0" && exit 0 ;;
    *) fail "unknown option $1" ;;
    esac
done

# glibc of 2.34 and newer has the one, everything else of Linux the other.
system() {
    machine="$(uname -m)"
    case "$machine" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no build for $machine" ;;
    esac
    case "$(uname -s)" in
    Linux)
        if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then echo "$machine-unknown-linux-gnu"; else echo "$machine-unknown-linux-musl"; fi
        ;;
    *) fail "there is no build for $(uname -s)" ;;
    esac
}

fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 3 -o "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -qO "$2" "$1"
    else
        fail "neither curl nor wget is here"
    fi || fail "$1 cannot be fetched"
}

sum() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

case "$releases" in http://* | https://*) ;; *) fail "set CAIRN_RELEASES to the address of releases" ;; esac
case "$version" in *[!0-9A-Za-z.+-]* | "") fail "'$version' is no version" ;; esac
[ -n "$target" ] || target="$(system)"
name="cairn-$version-$target"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT INT TERM
fetch "$releases/v$version/SHA256SUMS" "$work/SHA256SUMS"
# The sum of the archive that ends so, when the release has it.
listed() { sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.$1\$/\1/p" "$work/SHA256SUMS"; }
kind=gz
if command -v xz >/dev/null 2>&1 && [ -n "$(listed xz)" ]; then kind=xz; fi
archive="$name.tar.$kind"
expected="$(listed "$kind")"
[ -n "$expected" ] || fail "SHA256SUMS says nothing of $archive"
fetch "$releases/v$version/$archive" "$work/$archive"
[ "$(sum "$work/$archive")" = "$expected" ] || fail "the checksum of $archive is wrong; nothing was installed"

case "$kind" in
xz) xz -dc "$work/$archive" | tar -xf - -C "$work" ;;
*) tar -xzf "$work/$archive" -C "$work" ;;
esac
mkdir -p "$folder"
# Beside it first, so that a program that runs is replaced and never half there.
cp "$work/$name/cairn" "$folder/.cairn.new"
chmod 0755 "$folder/.cairn.new"
mv "$folder/.cairn.new" "$folder/cairn"
echo "cairn $version is in $folder"
case ":$PATH:" in *":$folder:"*) ;; *) echo "$folder is not in PATH" ;; esac
