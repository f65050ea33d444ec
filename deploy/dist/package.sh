#!/usr/bin/env bash
# Makes what a release ships of a binary: a tar ball, packed by gzip and, smaller, by xz, for Linux with glibc a Debian
# package too, and checksums.
#
#   deploy/dist/package.sh BINARY VERSION TARGET OUT
#   deploy/dist/package.sh target/dist/cairn 0.1.0 x86_64-unknown-linux-gnu out
#
# The same binary gives the same bytes: names, owners and times do not depend on who packs (SOURCE_DATE_EPOCH). The
# installer is told where releases are by CAIRN_RELEASES. A file named BINARY.cdx.json is shipped as the SBOM.
set -euo pipefail
[ $# -eq 4 ] || { sed -n '2,10p' "$0" >&2; exit 2; }
binary="$(realpath "$1")" version="$2" target="$3"
mkdir -p "$4"
out="$(realpath "$4")"
cd "$(dirname "$0")/../.."

export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
umask 022

# What stands beside the binary in all of them; a binary for another machine cannot print its pages here.
docs="$work/docs"
mkdir -p "$docs/man" "$docs/completions"
cp LICENSE NOTICE CHANGELOG.md "$docs/"
if "$binary" man --out "$docs/man" >/dev/null 2>&1; then
    for shell in bash zsh fish; do "$binary" completions "$shell" >"$docs/completions/cairn.$shell"; done
else
    echo "skipped: manual pages and completions: $target does not run here"
fi

tarball() {
    local name="cairn-$version-$target"
    mkdir -p "$work/$name"
    install -m 0755 "$binary" "$work/$name/cairn"
    cp -r "$docs/." deploy/dist/cairn.service "$work/$name/"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -cf "$work/$name.tar" "$name"
    gzip -9n <"$work/$name.tar" >"$out/$name.tar.gz"
    # By one thread: how many there are would be seen in the bytes.
    xz -9 -T1 <"$work/$name.tar" >"$out/$name.tar.xz"
}

debian_package() {
    local architecture root="$work/deb"
    case "$target" in
    x86_64-*-linux-gnu) architecture=amd64 ;;
    aarch64-*-linux-gnu) architecture=arm64 ;;
    *) return 0 ;;
    esac
    install -D -m 0755 "$binary" "$root/usr/bin/cairn"
    install -D -m 0644 deploy/dist/cairn.service "$root/usr/lib/systemd/system/cairn.service"
    install -D -m 0600 deploy/dist/cairn.env "$root/etc/cairn/cairn.env"
    install -D -m 0644 NOTICE "$root/usr/share/doc/cairn/NOTICE"
    install -D -m 0644 LICENSE "$root/usr/share/doc/cairn/copyright"
    install -d "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions"
    gzip -9n <CHANGELOG.md >"$root/usr/share/doc/cairn/changelog.gz"
    find "$docs/man" -name '*.1' -exec sh -c 'gzip -9n <"$1" >"$2/$(basename "$1").gz"' _ {} "$root/usr/share/man/man1" \;
    [ ! -f "$docs/completions/cairn.bash" ] ||
        install -m 0644 "$docs/completions/cairn.bash" "$root/usr/share/bash-completion/completions/cairn"
    mkdir "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<END
Package: cairn
Version: $version
Architecture: $architecture
Maintainer: The Cairn authors <cairn@localhost>
Section: net
Priority: optional
Depends: libc6 (>= 2.34), libgcc-s1, ca-certificates
Installed-Size: $(du -sk "$root" | cut -f1)
Description: workspace context service for AI agents
 Files, memories and databases, searchable by words and by meaning over MCP and
 REST. The service runs as a user of its own on one folder, /var/lib/cairn.
END
    echo /etc/cairn/cairn.env >"$root/DEBIAN/conffiles"
    install -m 0755 deploy/dist/deb/postinst deploy/dist/deb/prerm deploy/dist/deb/postrm "$root/DEBIAN/"
    dpkg-deb --root-owner-group -Zxz -z9 --build "$root" "$out/cairn_${version}_$architecture.deb" >/dev/null
}

tarball
debian_package
if [ -f "$binary.cdx.json" ]; then
    cp "$binary.cdx.json" "$out/cairn-$version-$target.cdx.json"
else
    echo "skipped: SBOM: there is no $binary.cdx.json"
fi
sed "s#@RELEASES@#${CAIRN_RELEASES:-}#; s#@VERSION@#$version#" deploy/dist/install.sh >"$out/install.sh"
chmod 0755 "$out/install.sh"
rm -f "$out/SHA256SUMS"
sums="$(cd "$out" && LC_ALL=C sha256sum -- *)"
echo "$sums" >"$out/SHA256SUMS"
