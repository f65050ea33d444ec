"""A base as `skopeo copy` lays it, of files that are given or of this machine.

python3 tests/chart/image_base.py BINARY LAYOUT: what the binary loads, root certificates, and the user of the image.
"""

import gzip
import hashlib
import io
import json
import pathlib
import platform
import re
import subprocess
import sys
import tarfile

OCI = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What distroless calls cc, as far as the binary loads it. Anything else would not be found there.
LIBRARIES = re.compile(r"libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-[a-z0-9_-]+\.so\.\d")
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
PASSWD = b"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"


def here():
    """This machine as images call it."""
    return ARCHITECTURES[platform.machine()]


def entry(name, content=None, mode=None, owner=0):
    """A folder, or a file with this content."""
    header = tarfile.TarInfo(f"./{name}")
    header.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    header.mode = mode or (0o755 if content is None else 0o644)
    header.uid = header.gid = owner
    header.size = len(content or b"")
    return header, content or b""


def link(name, to, kind=tarfile.SYMTYPE):
    """A symbolic link, or a second name."""
    header = tarfile.TarInfo(f"./{name}")
    header.type, header.linkname, header.mode = kind, to, 0o777
    return header, b""


def packed(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for header, content in entries:
            archive.addfile(header, io.BytesIO(content))
    return out.getvalue()


def write(out, layers_by_architecture, settings=None):
    """An index of one image for each architecture, of layers of entries."""

    def kept(content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        (out / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        (out / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    def json_of(value, kind, **more):
        return kept(json.dumps(value).encode(), kind, **more)

    images = []
    for architecture, layers in layers_by_architecture.items():
        tars = [packed(entries) for entries in layers]
        image = {
            "architecture": architecture,
            "os": "linux",
            "config": settings or {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in tars]},
        }
        blobs = [kept(gzip.compress(one, mtime=0), "layer.v1.tar+gzip") for one in tars]
        manifest = {"schemaVersion": 2, "config": json_of(image, "config.v1+json"), "layers": blobs}
        images.append(json_of(manifest, "manifest.v1+json", platform={"os": "linux", "architecture": architecture}))
    index = json_of({"schemaVersion": 2, "manifests": images}, "index.v1+json")
    (out / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [index]}))
    (out / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return index["digest"]


def of_this_machine(binary):
    """Entries of the libraries that the binary loads here, and of what stands beside them."""
    said = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    found = [entry("tmp", mode=0o1777), entry("etc"), entry("etc/passwd", PASSWD)]
    for library in sorted(set(re.findall(r"/[^ ]*", said))):
        path = pathlib.Path(library)
        if not LIBRARIES.fullmatch(path.name):
            sys.exit(f"image: the base does not have {path}")
        found.append(entry(str(path).lstrip("/"), path.read_bytes(), mode=0o755))
    # Also what needs no root certificates wants the file to be there.
    certificates = CERTIFICATES.read_bytes() if CERTIFICATES.exists() else b""
    found.append(entry(str(CERTIFICATES).lstrip("/"), certificates))
    return found


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[2]), {here(): [of_this_machine(pathlib.Path(sys.argv[1]))]})
