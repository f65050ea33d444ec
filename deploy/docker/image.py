#!/usr/bin/env python3
"""Makes the image of a release without an engine: binaries on the base of the Dockerfile, as an OCI layout.

  skopeo copy --all docker://gcr.io/distroless/cc-debian13:nonroot oci:base
  deploy/docker/image.py --base base --binary amd64=cairn --version 0.1.0 --commit … --out layout
  skopeo copy --all --preserve-digests oci:layout:0.1.0 docker://…

What the image runs, and as whom, is read from the last stage of the Dockerfile. Each platform gets one layer, packed by the
zstd program at its highest level, which no engine's own encoder reaches: a third less than gzip. Its window of 128 MiB is the
widest that zstd itself reads without being asked to; the decoder of containerd, Docker (23 and newer), Podman and CRI-O takes
512 MiB. Parts of the base that the binary does not load are left out.

The same inputs and the same version of zstd give the same bytes (SOURCE_DATE_EPOCH). A file BINARY.cdx.json goes into the image
as its SBOM. Prints the digests of the index and of each platform as JSON.
"""

import argparse
import datetime
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import string
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
USER = 65532
OCI = "application/vnd.oci.image"
INDEXES = (f"{OCI}.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
# Of the base: what belongs to programs in C++ and to OpenSSL, and conversions between character sets.
LEFT_OUT = re.compile(
    r"(usr/)?lib/[^/]+/(lib(ssl|crypto|z|zstd|stdc\+\+|gomp)\.so.*|(gconv|ossl-modules|engines-\d+)(/.*)?)"
    r"|(usr/share/doc|var/lib/dpkg/status\.d)/(lib(ssl|zstd|stdc\+\+|gomp)|zlib)[^/]*(/.*)?"
)
# Without these nothing starts, or no address with https is reached.
NEEDED = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-", "passwd", "ca-certificates.crt")


class Wrong(Exception):
    """An input cannot become an image."""


def folder(owner=0, mode=0o755):
    """A header for a folder."""
    header = tarfile.TarInfo()
    header.type, header.uid, header.gid, header.mode = tarfile.DIRTYPE, owner, owner, mode
    return header, b""


def file(path, mode=0o644):
    """A header for a file of root, and its bytes."""
    header = tarfile.TarInfo()
    header.mode = mode
    return header, path.read_bytes()


class Layout:
    """A folder of blobs that are called by their digests."""

    def __init__(self, path):
        self.path = path

    def blob(self, digest):
        return self.path / "blobs" / digest.replace(":", "/")

    def read(self, descriptor):
        return json.loads(self.blob(descriptor["digest"]).read_bytes())

    def add(self, content, kind, **more):
        """Keeps the bytes, and describes them."""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blob(digest).parent.mkdir(parents=True, exist_ok=True)
        self.blob(digest).write_bytes(content)
        return {"mediaType": f"{OCI}.{kind}", "digest": digest, "size": len(content), **more}

    def add_json(self, value, kind, **more):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), kind, **more)


def base_of(layout, architecture, descriptors=None):
    """The digest that the base is known by, its manifest for Linux on `architecture`, and its configuration."""
    if descriptors is None:
        descriptors = json.loads((layout.path / "index.json").read_bytes())["manifests"]
    for descriptor in descriptors:
        found = layout.read(descriptor)
        if descriptor["mediaType"] in INDEXES:
            if inner := base_of(layout, architecture, found["manifests"]):
                return descriptor["digest"], *inner[1:]
            continue
        configuration = layout.read(found["config"])
        if (configuration.get("os"), configuration.get("architecture")) == ("linux", architecture):
            return descriptor["digest"], found, configuration
    return None


def files_of(layout, manifest):
    """What the layers have, by path: headers and bytes."""
    found = {}
    for layer in manifest["layers"]:
        with tarfile.open(layout.blob(layer["digest"])) as archive:
            for member in archive:
                path = os.path.normpath(member.name).lstrip("/")
                if path.startswith("../") or pathlib.PurePath(path).name.startswith(".wh."):
                    raise Wrong(f"the base takes {path} away, which is not understood here")
                if path == "." or LEFT_OUT.fullmatch(path):
                    continue
                if member.islnk():
                    linked = os.path.normpath(member.linkname).lstrip("/")
                    if linked not in found:
                        raise Wrong(f"the base has {path}, a link to nothing")
                    found[path] = found[linked]
                elif member.isreg() or member.isdir() or member.issym():
                    found[path] = (member, archive.extractfile(member).read() if member.isreg() else b"")
                else:
                    raise Wrong(f"the base has {path}, which is no file, folder or link")
    for name in NEEDED:
        if not any(pathlib.PurePath(path).name.startswith(name) for path in found):
            raise Wrong(f"the base has no {name}")
    return found


def add_ours(found, binary):
    """What the Dockerfile copies, and the SBOM."""
    documents = "usr/share/doc/cairn"
    ours = {
        "data": folder(USER, 0o700),
        "usr/local/bin/cairn": file(binary, 0o755),
        f"{documents}/LICENSE": file(ROOT / "LICENSE"),
        f"{documents}/NOTICE": file(ROOT / "NOTICE"),
        f"{documents}/embedder/NOTICE": file(ROOT / "svc-retrieval/embed/model/NOTICE"),
    }
    bill = binary.with_name(f"{binary.name}.cdx.json")
    if bill.exists():
        ours[f"{documents}/cairn.cdx.json"] = file(bill)
    found |= ours


def add_folders(found):
    """Folders that nothing says anything of: a runtime makes them as it likes."""
    for path in list(found):
        for parent in list(pathlib.PurePath(path).parents)[:-1]:
            found.setdefault(str(parent), folder())


def write_tar(path, found, epoch):
    """Sorted, with numbers as owners and one time for all."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(found):
            original, content = found[name]
            header = tarfile.TarInfo(name)
            header.type, header.linkname, header.size = original.type, original.linkname, len(content)
            header.mode, header.uid, header.gid = original.mode & 0o7777, original.uid, original.gid
            header.mtime = epoch
            archive.addfile(header, io.BytesIO(content))


def layer_of(layout, found, epoch, level):
    """The layer's descriptor, and the digest of what is packed in it."""
    with tempfile.TemporaryDirectory() as name:
        plain, packed = pathlib.Path(name, "layer.tar"), pathlib.Path(name, "layer.tar.zst")
        write_tar(plain, found, epoch)
        words = ["zstd", "-q", "-T1", "--ultra", f"-{level}", "--long=27", str(plain), "-o", str(packed)]
        subprocess.run(words, check=True)
        with plain.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return layout.add(packed.read_bytes(), "layer.v1.tar+zstd"), f"sha256:{digest}"


def instructions(arguments):
    """The last stage of the Dockerfile, its arguments filled in: pairs of a word and what follows."""
    lines = re.sub(r"\\\n", " ", DOCKERFILE.read_text()).splitlines()
    stage = "\n".join(lines).rpartition("\nFROM ")[2].splitlines()[1:]
    said = [line.split(maxsplit=1) for line in stage if re.match(r"[A-Z]+ ", line)]
    return [(word, string.Template(rest).safe_substitute(arguments)) for word, rest in said]


def configured(configuration, said, base):
    """How the base is run, with what the Dockerfile says."""
    settings = dict(configuration.get("config", {}))
    environment = dict(pair.split("=", 1) for pair in settings.get("Env") or [])
    labels = {"org.opencontainers.image.base.digest": base}
    for word, rest in said:
        match word:
            case "ENV":
                environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "LABEL":
                labels |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "EXPOSE":
                settings["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
            case "USER":
                settings["User"] = rest
            case "ENTRYPOINT" | "CMD":
                settings[word.title()] = json.loads(rest)
            case "ARG" | "COPY":
                pass
            case _:
                raise Wrong(f"{word} of the Dockerfile is not understood here")
    settings["Env"] = [f"{name}={value}" for name, value in environment.items()]
    return settings | {"Labels": labels}


def platform_of(layout, base, architecture, binary, options):
    """Makes the image for one architecture; its descriptor."""
    found = base_of(base, architecture)
    if found is None:
        raise Wrong(f"the base is not for {architecture}")
    known_as, manifest, configuration = found
    files = files_of(base, manifest)
    add_ours(files, binary)
    add_folders(files)
    layer, packed = layer_of(layout, files, options.epoch, options.level)
    created = datetime.datetime.fromtimestamp(options.epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    platform = {name: configuration[name] for name in ("architecture", "os", "variant") if name in configuration}
    said = instructions({"VERSION": options.version, "CAIRN_COMMIT": options.commit})
    image = {
        "created": created,
        "config": configured(configuration, said, known_as),
        "rootfs": {"type": "layers", "diff_ids": [packed]},
        "history": [{"created": created, "created_by": "deploy/docker/image.py"}],
    }
    parts = {"config": layout.add_json(image | platform, "config.v1+json"), "layers": [layer]}
    kind = "manifest.v1+json"
    return layout.add_json({"schemaVersion": 2, "mediaType": f"{OCI}.{kind}"} | parts, kind, platform=platform)


def make(options):
    """Writes the layout; the digests of the index and of each platform."""
    layout, base = Layout(options.out), Layout(options.base)
    if options.out.exists():
        raise Wrong(f"{options.out} is there already")
    platforms = {
        architecture: platform_of(layout, base, architecture, binary, options)
        for architecture, binary in sorted(options.binary)
    }
    kind = "index.v1+json"
    index = {"schemaVersion": 2, "mediaType": f"{OCI}.{kind}", "manifests": list(platforms.values())}
    named = {"annotations": {"org.opencontainers.image.ref.name": options.version}}
    described = layout.add_json(index, kind, **named)
    (options.out / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))
    (options.out / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    return {"index": described["digest"]} | {name: one["digest"] for name, one in platforms.items()}


def _binary(said):
    architecture, _, path = said.partition("=")
    return architecture, pathlib.Path(path)


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=pathlib.Path, required=True, help="an OCI layout")
    parser.add_argument("--binary", type=_binary, action="append", required=True, metavar="ARCHITECTURE=FILE")
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", default="")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--level", type=int, default=22, help="of zstd; a lower one is for trying out")
    options = parser.parse_args(words)
    options.epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return options


if __name__ == "__main__":
    try:
        print(json.dumps(make(parsed())))
    except (Wrong, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"image: {error}")
