"""The image of a release, made of stand-ins for its base and the binary: as deploy/docker/image.py makes it, with no engine."""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import image_base
import layout
from image_base import entry, link

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
SCRIPT = ROOT / "deploy/docker/image.py"
WORKFLOW = ROOT / ".github/workflows/release.yml"
EPOCH = 1_700_000_000
LIBRARY = "usr/lib/x86_64-linux-gnu"
SETTINGS = {"Env": ["PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"], "User": "root"}


def _image():
    spec = importlib.util.spec_from_file_location("image", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


image = _image()


def of_base():
    """Two layers, as distroless has one for each package: what is needed, and what is not."""
    needed = [
        entry("."),
        entry("etc/passwd", image_base.PASSWD),
        entry("etc/ssl/certs/ca-certificates.crt", b"certificates"),
        entry("home/nonroot", mode=0o700, owner=65532),
        entry("tmp", mode=0o1777),
        entry(f"{LIBRARY}/libc.so.6", b"old"),
        entry(f"{LIBRARY}/libm.so.6", b"m"),
        entry(f"{LIBRARY}/libgcc_s.so.1", b"gcc"),
        entry("usr/lib64/ld-linux-x86-64.so.2", b"ld", mode=0o755),
    ]
    more = [entry(f"{LIBRARY}/libc.so.6", b"new", mode=0o755), link("lib", "usr/lib")]
    more.append(link("etc/passwd-", "./etc/passwd", tarfile.LNKTYPE))
    for name in ("libssl.so.3", "libcrypto.so.3", "libstdc++.so.6.0.33", "libgomp.so.1", "gconv/UTF-16.so"):
        more.append(entry(f"{LIBRARY}/{name}", b"not loaded"))
    more.append(entry("var/lib/dpkg/status.d/libssl3t64", b"Package: libssl3t64"))
    more.append(entry("var/lib/dpkg/status.d/libc6", b"Package: libc6"))
    return [needed, more]


@unittest.skipUnless(shutil.which("zstd"), "zstd is not here; run.sh says so")
class Image(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.binary = self.folder / "cairn"
        self.binary.write_bytes(b"\x7fELF" + b"code " * 100_000)
        self.base = self.folder / "base"
        self.of_base = image_base.write(self.base, {"arm64": of_base(), "amd64": of_base()}, SETTINGS)

    def made(self, name="out", *more, base=None):
        out = self.folder / name
        words = ["--base", str(base or self.base), "--binary", f"amd64={self.binary}", "--binary", f"arm64={self.binary}"]
        words += ["--version", "0.1.0", "--commit", "c0ffee", "--out", str(out), *more]
        done = subprocess.run(
            [str(SCRIPT), *words],
            env={"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": str(EPOCH)},
            capture_output=True,
            text=True,
            check=False,
        )
        return out, done

    def made_well(self, *words, **more):
        out, done = self.made(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out, json.loads(done.stdout)

    def test_it_is_what_an_image_is_held_to(self):
        out, said = self.made_well()
        found = layout.images(out)
        self.assertEqual(said, {name: one["digest"] for name, one in found.items()} | {"index": said["index"]})
        self.assertEqual(list(found), ["amd64", "arm64"])
        for architecture, descriptor in found.items():
            size = layout.check_image(out, architecture, descriptor, limit=100_000)
            with self.assertRaisesRegex(layout.Wrong, "more than"):
                layout.check_image(out, architecture, descriptor, limit=size - 1)

    def test_the_same_inputs_give_the_same_digest(self):
        _, one = self.made_well("one")
        for path in (self.binary, self.base / "index.json"):
            os.utime(path, (1, 1))
        self.assertEqual(one, self.made_well("two")[1])
        self.binary.write_bytes(b"\x7fELF" + b"other " * 100_000)
        self.assertNotEqual(one, self.made_well("three")[1])

    def test_it_runs_as_the_dockerfile_says(self):
        out, _ = self.made_well()
        descriptor = layout.images(out)["amd64"]
        settings = layout.read(out, layout.read(out, descriptor)["config"])["config"]
        text = DOCKERFILE.read_text()
        self.assertEqual(settings["User"], "65532:65532")
        self.assertEqual(settings["Entrypoint"], json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1]))
        self.assertEqual(settings["Cmd"], json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1]))
        self.assertIn("8700/tcp", settings["ExposedPorts"])
        self.assertLessEqual({*SETTINGS["Env"], "CAIRN_DATA=/data", "CAIRN_BASE_URL=http://localhost:8700"}, {*settings["Env"]})
        labels = {name.rpartition(".")[2]: value for name, value in settings["Labels"].items()}
        self.assertEqual((labels["version"], labels["revision"], labels["digest"]), ("0.1.0", "c0ffee", self.of_base))
        self.assertEqual(labels["licenses"], "Apache-2.0")

    def test_it_has_what_the_dockerfile_copies_and_no_more_of_the_base_than_it_loads(self):
        (self.folder / "cairn.cdx.json").write_text("{}")
        out, _ = self.made_well()
        plain = self.folder / "layer.tar"
        layout.unpack(out, layout.images(out)["amd64"], plain)
        with tarfile.open(plain) as archive:
            names = set(archive.getnames())
            libc = archive.extractfile(f"{LIBRARY}/libc.so.6").read()
            self.assertEqual(archive.getmember("lib").linkname, "usr/lib")
            self.assertEqual(archive.extractfile("etc/passwd-").read(), image_base.PASSWD)
            self.assertEqual(archive.extractfile("usr/local/bin/cairn").read(), self.binary.read_bytes())
            self.assertEqual({member.mtime for member in archive}, {EPOCH})
        self.assertEqual(libc, b"new", "a later layer wins")
        stage = DOCKERFILE.read_text().rpartition("\nFROM ")[2]
        for *sources, to in (line.split()[1:] for line in stage.splitlines() if line.startswith("COPY ")):
            for source in [one for one in sources if not one.startswith("--")]:
                path = f"{to}{pathlib.PurePath(source).name}" if to.endswith("/") else to
                self.assertIn(path.lstrip("/"), names)
        self.assertIn("usr/share/doc/cairn/cairn.cdx.json", names)
        self.assertIn("var/lib/dpkg/status.d/libc6", names)
        for left_out in ("ssl", "crypto", "stdc++", "gomp", "gconv"):
            self.assertFalse([name for name in names if left_out in name and "etc/ssl" not in name], left_out)

    def test_a_base_that_lacks_something_is_refused(self):
        for lacking in ("libgcc_s.so.1", "ca-certificates.crt"):
            layers = [[one for one in layer if lacking not in one[0].name] for layer in of_base()]
            base = self.folder / f"without-{lacking}"
            image_base.write(base, {"amd64": layers, "arm64": layers})
            _, done = self.made(f"out-{lacking}", base=base)
            self.assertEqual((done.returncode, done.stderr), (1, f"image: the base has no {lacking}\n"))
        base = self.folder / "one"
        image_base.write(base, {"amd64": of_base()})
        _, done = self.made("out-arm", base=base)
        self.assertEqual((done.returncode, done.stderr), (1, "image: the base is not for arm64\n"))

    def test_what_an_image_must_not_have_is_found(self):
        sticky, file_for_all = entry("tmp", mode=0o1777), entry("etc/hosts", b"", mode=0o666)
        for reason, more in {
            "is a shell": entry("usr/bin/sh", b"", mode=0o755),
            "runs as its owner": entry("usr/bin/su", b"", mode=0o4755),
            "everybody may write to etc/hosts": file_for_all,
            "everybody may write to var/all": entry("var/all", mode=0o777),
            "does not belong to root": entry("etc/mine", b"", owner=65532),
        }.items():
            base = self.folder / f"base {reason}".replace("/", "-")
            layers = [[*of_base()[0], *of_base()[1], sticky, more]]
            image_base.write(base, {"amd64": layers, "arm64": layers}, SETTINGS)
            out, _ = self.made_well(f"out {base.name}", "--level", "1", base=base)
            with self.assertRaisesRegex(layout.Wrong, reason):
                layout.check_image(out, "amd64", layout.images(out)["amd64"])

    def test_what_is_not_as_it_says_is_found(self):
        out, _ = self.made_well()
        (layer,) = layout.read(out, layout.images(out)["amd64"])["layers"]
        path = layout.path_of(out, layer)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with self.assertRaisesRegex(layout.Wrong, "the bytes of .* are others"):
            layout.images(out)

    def test_windows_are_read_from_the_frame(self):
        for window, words in {1 << 27: ["--long=27"], 1 << 28: ["--long=28"], 1 << 20: ["--zstd=wlog=20"]}.items():
            # From a pipe, so that the encoder does not know that there is less than a window.
            done = subprocess.run(["zstd", "-1", "-qc", *words], input=b"text", capture_output=True, check=True)
            self.assertEqual(layout.window_of(done.stdout), window)
        file = self.folder / "known"
        for size in (200, 1_000, 100_000):
            file.write_bytes(bytes(size))
            done = subprocess.run(["zstd", "-qc", str(file)], capture_output=True, check=True)
            self.assertEqual(layout.window_of(done.stdout), size)

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not here; run.sh says so")
    def test_the_decoder_of_runtimes_takes_it(self):
        # More than the window, so that it is used whole.
        with self.binary.open("wb") as binary:
            binary.truncate(layout.WINDOW + 1_000_000)
        out, said = self.made_well("out", "--level", "1")
        descriptor = layout.images(out)["amd64"]
        (layer,) = layout.read(out, descriptor)["layers"]
        with layout.path_of(out, layer).open("rb") as stream:
            self.assertEqual(layout.window_of(stream.read(32)), layout.WINDOW)

        def skopeo(*words):
            done = subprocess.run(["skopeo", "--insecure-policy", *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        kept = self.folder / "kept"
        skopeo("copy", "--quiet", "--all", f"oci:{out}:0.1.0", f"oci:{kept}:0.1.0")
        (index,) = json.loads((kept / "index.json").read_text())["manifests"]
        self.assertEqual(index["digest"], said["index"], "what is pushed has the digest that is signed")
        plain = self.folder / "plain"
        skopeo("--override-arch", "amd64", "copy", "--quiet", "--dest-decompress", f"oci:{out}:0.1.0", f"dir:{plain}")
        (unpacked,) = layout.read(out, layout.read(out, descriptor)["config"])["rootfs"]["diff_ids"]
        digest = hashlib.sha256((plain / unpacked.removeprefix("sha256:")).read_bytes()).hexdigest()
        self.assertEqual(f"sha256:{digest}", unpacked)


class Workflow(unittest.TestCase):
    def test_the_release_is_made_and_checked_by_what_is_checked_here(self):
        text = WORKFLOW.read_text()
        self.assertRegex(text, r"deploy/docker/image\.py .*--base")
        self.assertRegex(text, r"layout\.py --limit 45000000 ")
        base = re.search(r"^ARG BASE_IMAGE=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)[1]
        self.assertIn(base, image.__doc__)


if __name__ == "__main__":
    unittest.main()
