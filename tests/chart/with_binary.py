"""What the chart would start, started: with_binary.py BINARY.

The processes get the arguments and the environment that the chart renders, with addresses, folders and certificates of this machine;
then the steps of `helm test` ask them, with the token that the chart has made. The mesh speaks mutual TLS, on SQLite in place of
the stores."""

import base64
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import urllib.request

from rendering import COMPONENT, SERVICES, containers, environment, kind, objects, pods, service

BINARY = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
# Stores that are not here; services of a mesh then keep SQLite files and an index of their own.
STORES = ("CAIRN_DATABASE_URL", "CAIRN_REDIS_URL", "CAIRN_QDRANT_", "CAIRN_ASSETS", "AWS_")
START_SECONDS = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def certificates(folder):
    """A CA and one certificate for all, who are called localhost here."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    (folder / "names").write_text("subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=mesh")
    openssl("req", *key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=localhost")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "tls.csr", *signed, "-out", "tls.crt")


class Deployment:
    """Processes as a rendering has them."""

    def __init__(self, folder, found, components):
        self.folder, self.found = folder, found
        self.ports = {name: free_port() for name in components}
        self.admin = {name: free_port() for name in components}
        secret = next(iter(kind("Secret", found).values()))["data"]
        self.secrets = {key: base64.b64decode(value).decode() for key, value in secret.items()}
        # Which the chart does not make.
        self.secrets["backup-key"] = "5e" * 32
        self.processes = []

    def here(self, text):
        """A value of a pod, as it is on this machine."""
        for name, port in self.ports.items():
            text = re.sub(rf"://release-cairn-{name}:\d+", f"://localhost:{port}", text)
        for mounted, folder in {"/etc/cairn/tls": "", "/etc/cairn/secrets": "/secrets", "/work": ""}.items():
            text = re.sub(rf"^{mounted}/", f"{self.folder}{folder}/", text)
        return str(self.folder / text[1:]) if text in ("/data", "/backups") else text

    def mount(self, name):
        """The secrets that the pod has as files, all in one folder: equal names are equal secrets."""
        (self.folder / "secrets").mkdir(exist_ok=True)
        for template in pods(self.found).values():
            if template["metadata"]["labels"][COMPONENT] != name:
                continue
            projected = [volume["projected"] for volume in template["spec"]["volumes"] if "projected" in volume]
            for source in [source["secret"] for volume in projected for source in volume["sources"]]:
                for item in source["items"]:
                    if not item["path"].startswith(STORES):
                        (self.folder / "secrets" / item["path"]).write_text(self.secrets[item["key"]] + "\n")

    def told(self, container):
        told = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        for name, variable in environment(container).items():
            if name.startswith(STORES):
                continue
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference:
                told[name] = self.secrets[reference["key"]]
            elif "value" in variable and name != "HOME":
                told[name] = self.here(variable["value"])
        return told

    def start(self, name):
        container = service(name, self.found)
        words = container["args"]
        words[words.index("--listen") + 1] = f"127.0.0.1:{self.ports[name]}"
        words[words.index("--admin-listen") + 1] = f"127.0.0.1:{self.admin[name]}"
        with (self.folder / f"{name}.log").open("w") as log:
            self.processes.append(subprocess.Popen([BINARY, *words], env=self.told(container), stdout=log, stderr=log))

    def await_ready(self, name):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.admin[name]}/readyz", timeout=1),
            ):
                return
            time.sleep(0.1)
        raise AssertionError(f"{name} does not get ready: {(self.folder / f'{name}.log').read_text()[-2000:]}")

    def ask(self):
        """The steps of `helm test`."""
        job = next(iter(kind("Job", self.found).values()))
        for folder in ("with", "without"):
            (self.folder / folder).mkdir()
        (self.folder / "with/helm-test.md").write_text(
            kind("ConfigMap", self.found)["release-cairn-test"]["data"]["helm-test.md"]
        )
        for step in containers(job["spec"]["template"]):
            words = [self.here(word) for word in step["args"]]
            told = self.told(step)
            told["CAIRN_URL"] = re.sub(r"localhost", "127.0.0.1", told["CAIRN_URL"])
            done = subprocess.run([BINARY, *words], env=told, capture_output=True, text=True, check=False, timeout=60)
            if done.returncode:
                raise AssertionError(f"{step['name']}: {done.stdout}{done.stderr}")
            if step["name"] in ("search", "script") and "helm-test.md" not in done.stdout:
                raise AssertionError(f"{step['name']} does not find what was written: {done.stdout}")

    def back_up(self):
        """What the CronJob runs beside the pod, twice, and what a drill would do with what it made."""
        told = self.told(service("backup", self.found))
        secret_key = {"CAIRN_SECRET_KEY": self.secrets["secret-key"]}
        drill = {"CAIRN_DATA": str(self.folder / "drill"), **secret_key}
        words = service("backup", self.found)["args"]
        for step, more in [(words, {}), (words, {}), (["verify"], secret_key), (["restore"], drill)]:
            done = subprocess.run(
                [BINARY, *step], env=told | more, capture_output=True, text=True, check=False, timeout=60
            )
            if done.returncode:
                raise AssertionError(f"{' '.join(step)}: {done.stdout}{done.stderr}")
        if not (self.folder / "drill/content.db").exists():
            raise AssertionError("nothing was put back")

    def stop(self):
        for process in self.processes:
            process.terminate()
        return [process.wait(60) for process in self.processes]


class Started(unittest.TestCase):
    def live(self, components, *settings, has_backups=False):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        certificates(folder)
        # The delay is for balancers, of which there are none.
        deployment = Deployment(folder, objects(*settings, "drain.shutdownDelaySeconds=0"), components)
        self.addCleanup(deployment.stop)
        for name in components:
            deployment.mount(name)
        for name in components:
            deployment.start(name)
        for name in components:
            deployment.await_ready(name)
        deployment.ask()
        if has_backups:
            deployment.back_up()
        self.assertEqual(set(deployment.stop()), {0}, "they end as they should")

    def test_one_pod(self):
        backups = (
            "backup.enabled=true",
            "backup.existingClaim=backups",
            "backup.key.existingSecret=mine",
            "backup.key.existingSecretKey=backup-key",
        )
        self.live(["single"], *backups, has_backups=True)

    def test_the_mesh_with_mutual_tls_and_secrets_in_files(self):
        mesh = (
            "mode=mesh",
            "database.existingSecret=pg",
            "tls.enabled=true",
            "tls.issuerRef.name=mesh",
            "secrets.as=files",
        )
        self.live(SERVICES, *mesh)


if __name__ == "__main__":
    unittest.main(verbosity=2)
