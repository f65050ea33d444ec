"""What an image is held to that deploy/docker/image.py has made.

python3 tests/chart/layout.py LAYOUT [--limit BYTES] [--unpack ARCHITECTURE FOLDER]

Digests and sizes are those of the bytes; the one layer is zstd in a window that every runtime reads; it runs as a number that is
not root, from files of root that it cannot write, without a shell. --limit is of what is fetched for one platform.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

USER = 65532
WINDOW = 1 << 27
SHELLS = {"sh", "bash", "dash", "ash", "busybox", "zsh"}
OCI = "application/vnd.oci.image"


class Wrong(Exception):
    """The image is not what it has to be."""


def expect(is_right, said):
    if not is_right:
        raise Wrong(said)


def path_of(layout, descriptor):
    return layout / "blobs" / descriptor["digest"].replace(":", "/")


def read(layout, descriptor):
    return json.loads(path_of(layout, descriptor).read_bytes())


def checked(layout, descriptor, kind):
    """The descriptor, once the blob is what it says."""
    expect(descriptor["mediaType"] == f"{OCI}.{kind}", f"{descriptor['mediaType']} instead of {kind}")
    path = path_of(layout, descriptor)
    expect(path.is_file(), f"{descriptor['digest']} is missing")
    expect(path.stat().st_size == descriptor["size"], f"the size of {descriptor['digest']} is wrong")
    expect(digest_of(path) == descriptor["digest"], f"the bytes of {descriptor['digest']} are others")
    return descriptor


def digest_of(path):
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def window_of(frame):
    """How far back a frame of zstd may refer, from its header (RFC 8878, 3.1.1.1)."""
    expect(frame[:4] == b"\x28\xb5\x2f\xfd", "the layer is no frame of zstd")
    described, at = frame[4], 5
    is_single = bool(described & 0x20)
    if not is_single:
        exponent, mantissa = frame[at] >> 3, frame[at] & 7
        base = 1 << (10 + exponent)
        return base + base // 8 * mantissa
    at += (0, 1, 2, 4)[described & 3]
    length = (1, 2, 4, 8)[described >> 6]
    size = int.from_bytes(frame[at : at + length], "little")
    return size + 256 if length == 2 else size


def images(layout):
    """The descriptors of all platforms, by architecture, once nothing is missing and nothing is too much."""
    expect(json.loads((layout / "oci-layout").read_text())["imageLayoutVersion"] == "1.0.0", "the layout's version")
    (index,) = json.loads((layout / "index.json").read_text())["manifests"]
    seen = [checked(layout, index, "index.v1+json")]
    found = {}
    for descriptor in read(layout, index)["manifests"]:
        manifest = read(layout, checked(layout, descriptor, "manifest.v1+json"))
        expect(len(manifest["layers"]) == 1, "there is one layer")
        seen += [descriptor, checked(layout, manifest["config"], "config.v1+json")]
        seen += [checked(layout, layer, "layer.v1.tar+zstd") for layer in manifest["layers"]]
        found[descriptor["platform"]["architecture"]] = descriptor
    kept = {path.name for path in (layout / "blobs/sha256").iterdir()}
    expect(kept == {one["digest"].removeprefix("sha256:") for one in seen}, "blobs that nobody refers to")
    return found


def unpack(layout, descriptor, out):
    """Writes the layer as a tar file, by the reference decoder with the limit that it has of itself."""
    (layer,) = read(layout, descriptor)["layers"]
    with path_of(layout, layer).open("rb") as stream, out.open("wb") as unpacked:
        subprocess.run(["zstd", "-dcq"], stdin=stream, stdout=unpacked, check=True)


def check_files(archive, created):
    """The entries of the layer by path."""
    found = {member.name: member for member in archive}
    expect(list(found) == sorted(found), "the entries are sorted")
    for name, member in found.items():
        expect(member.mtime == created, f"{name} has another time")
        expect(member.isreg() or member.isdir() or member.issym(), f"{name} is no file, folder or link")
        expect(member.isdir() or not member.mode & 0o6000, f"{name} runs as its owner")
        expect(not (member.uname or member.gname), f"{name} has its owner's name")
        expect(member.isdir() or pathlib.PurePath(name).name not in SHELLS, f"{name} is a shell")
        is_for_all = member.mode & 0o002 and not member.issym()
        expect(not is_for_all or member.isdir() and member.mode & 0o1000, f"everybody may write to {name}")
        is_ours = name == "data" or name.startswith("home/")
        expect(member.uid == 0 or is_ours and not member.isreg(), f"{name} does not belong to root")
        parent = str(pathlib.PurePath(name).parent)
        expect(parent == "." or (parent in found and not found[parent].isreg()), f"{name} has no folder")
    return found


def check_settings(settings, found):
    user, _, group = settings["User"].partition(":")
    expect(user == group == str(USER), f"the user is {settings['User']}")
    program, *_ = settings["Entrypoint"]
    expect(found[program.lstrip("/")].mode & 0o111 == 0o111, f"{program} cannot be run")
    environment = dict(pair.split("=", 1) for pair in settings["Env"])
    data = found[environment["CAIRN_DATA"].lstrip("/")]
    expect((data.uid, data.gid, data.mode) == (USER, USER, 0o700), "the folder of data is its own")
    expect(settings["Labels"].get("org.opencontainers.image.version"), "the label of the version")


def check_image(layout, architecture, descriptor, limit=None):
    """The bytes that are fetched for the platform."""
    manifest = read(layout, descriptor)
    (layer,) = manifest["layers"]
    with path_of(layout, layer).open("rb") as stream:
        window = window_of(stream.read(32))
    expect(window <= WINDOW, f"a window of {window} bytes is more than every decoder takes")
    image = read(layout, manifest["config"])
    expect((image["os"], image["architecture"]) == ("linux", architecture), "the platform")
    with tempfile.TemporaryDirectory() as name:
        plain = pathlib.Path(name, "layer.tar")
        unpack(layout, descriptor, plain)
        expect(image["rootfs"]["diff_ids"] == [digest_of(plain)], "the digest of what is packed")
        with tarfile.open(plain) as archive:
            created = next(iter(archive)).mtime
            check_settings(image["config"], check_files(archive, created))
    size = descriptor["size"] + manifest["config"]["size"] + layer["size"]
    expect(limit is None or size <= limit, f"{architecture}: {size} bytes are more than {limit}")
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layout", type=pathlib.Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--unpack", nargs=2, metavar=("ARCHITECTURE", "FOLDER"))
    options = parser.parse_args()
    found = images(options.layout)
    for architecture, descriptor in found.items():
        size = check_image(options.layout, architecture, descriptor, options.limit)
        print(f"{architecture}: {size / 1e6:.1f} MB are fetched")
    if options.unpack:
        architecture, folder = options.unpack
        with tempfile.TemporaryDirectory() as name:
            plain = pathlib.Path(name, "layer.tar")
            unpack(options.layout, found[architecture], plain)
            subprocess.run(["tar", "-xpf", str(plain), "--numeric-owner", "-C", folder], check=True)


if __name__ == "__main__":
    try:
        main()
    except (Wrong, subprocess.CalledProcessError) as error:
        sys.exit(f"layout: {error}")
