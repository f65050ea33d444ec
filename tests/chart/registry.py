"""The chart in an OCI registry: Debian's, on loopback."""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from rendering import CHART, helm

START_SECONDS = 20
IS_HERE = shutil.which("docker-registry") is not None


@contextlib.contextmanager
def pushed():
    """The chart's reference (oci://…) once it is there, and the archive that was pushed."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        (folder / "config.yml").write_text(
            f"{{version: 0.1, storage: {{filesystem: {{rootdirectory: {folder}/kept}}}}, http: {{addr: '{address}'}}}}\n"
        )
        with (folder / "log").open("w") as log:
            command = ["docker-registry", "serve", str(folder / "config.yml")]
            registry = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _await_answer(address)
            _expect(helm("package", str(CHART), "--destination", str(folder)))
            archive = next(folder.glob("*.tgz"))
            _expect(helm("push", str(archive), f"oci://{address}/charts", "--plain-http"))
            yield f"oci://{address}/charts/cairn", archive
        finally:
            registry.terminate()
            registry.wait()


def _await_answer(address):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/v2/", timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("the registry does not answer")


def _expect(done):
    status, _, error = done
    if status:
        raise AssertionError(error)
