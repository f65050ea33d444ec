"""What a release says that it is made of: its CycloneDX file, and the list that cargo-auditable writes into the binary. Both
are of crates that Cargo.lock has, of this version, and the first has all that the second has.

python3 tests/chart/sbom.py [--binary BINARY] [--sbom FILE] [--required]

A binary without a list is told as `skipped`; with --required, as for a release, it is a failure.
"""

import argparse
import json
import pathlib
import struct
import sys
import tomllib
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "cairn"
SECTION = b".dep-v0"


class Wrong(Exception):
    """A list is not what it has to be."""


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def locked():
    """Names and versions of all crates of Cargo.lock."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]) for package in packages}


def section(binary, name=SECTION):
    """The bytes of a section of a 64-bit little-endian ELF file; None where it has none of that name."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise Wrong("the binary is no 64-bit little-endian ELF file")
    (start,) = struct.unpack_from("<Q", binary, 0x28)
    size, count, names = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", binary, start + size * number) for number in range(count)]
    if not headers:
        return None
    texts = headers[names][4]
    for of_name, _, _, _, offset, length in headers:
        at = texts + of_name
        if binary[at : binary.index(b"\0", at)] == name:
            return binary[offset : offset + length]
    return None


def crates_of_binary(binary):
    """Names and versions of what is in the binary, itself among them; None where it was built without cargo-auditable."""
    packed = section(binary)
    if packed is None:
        return None
    packages = json.loads(zlib.decompress(packed))["packages"]
    roots = [(package["name"], package["version"]) for package in packages if package.get("root")]
    if roots != [(NAME, version())]:
        raise Wrong(f"the list in the binary is of {roots}")
    return {(package["name"], package["version"]) for package in packages if package.get("kind") != "build"}


def crates_of_bill(bill):
    """Names and versions of what a CycloneDX document lists, and of what it is about."""
    about = bill.get("metadata", {}).get("component", {})
    if bill.get("bomFormat") != "CycloneDX" or (about.get("name"), about.get("version")) != (NAME, version()):
        raise Wrong(f"the SBOM is of {about.get('name')} {about.get('version')}")
    return {(about["name"], about["version"])} | {(one["name"], one["version"]) for one in bill.get("components", [])}


def check(crates, what):
    if len(crates) < 2:
        raise Wrong(f"{what} lists nothing")
    if unknown := crates - locked():
        raise Wrong(f"{what} has what Cargo.lock does not have: {sorted(unknown)[:5]}")


def main():
    asked = argparse.ArgumentParser(description="checks what a release says that it is made of")
    asked.add_argument("--binary", type=pathlib.Path)
    asked.add_argument("--sbom", type=pathlib.Path)
    asked.add_argument("--required", action="store_true")
    asked = asked.parse_args()
    listed = None
    if asked.binary:
        listed = crates_of_binary(asked.binary.read_bytes())
        if listed is not None:
            check(listed, "the list in the binary")
        elif asked.required:
            raise Wrong("the binary has no list: build it with cargo-auditable")
        else:
            print("skipped: cargo-auditable: the binary was built without it and has no list of crates")
    if asked.sbom:
        billed = crates_of_bill(json.loads(asked.sbom.read_text()))
        check(billed, "the SBOM")
        if missing := (listed or set()) - billed:
            raise Wrong(f"the SBOM lacks what is in the binary: {sorted(missing)[:5]}")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"sbom: {wrong}")
