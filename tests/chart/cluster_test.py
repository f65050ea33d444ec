"""The life of a release on a real control plane, in both modes; tests/chart/cluster.sh starts it. Namespaces enforce the restricted
standard, so the real admission plugin judges every pod."""

import base64
import json
import pathlib
import subprocess
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = str(ROOT / "deploy/helm/cairn")
MESH = [
    "--set", "mode=mesh,database.existingSecret=pg,redis.existingSecret=redis,qdrant.url=http://qdrant:6334",
    "--set", "assets.url=s3://bucket/prefix,assets.existingSecret=s3",
]  # fmt: skip
SERVICES = ["gateway", "auth", "content", "ingest", "retrieval", "sync"]


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


def items(namespace, kind, selector=""):
    found = run("kubectl", "-n", namespace, "get", kind, "-l", selector, "-o", "json").stdout
    return json.loads(found)["items"]


def ready(namespace, component):
    def is_ready(pod):
        return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))

    pods = items(namespace, "pods", f"app.kubernetes.io/component={component}")
    return [pod for pod in pods if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]


class Watch:
    """The least number of ready pods of each service while something happens."""

    def __init__(self, namespace):
        self.namespace, self.least, self.is_over = namespace, dict.fromkeys(SERVICES, 99), False

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.is_over:
            for service in SERVICES:
                self.least[service] = min(self.least[service], len(ready(self.namespace, service)))

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()


class Release(unittest.TestCase):
    namespace = ""

    @classmethod
    def prepare(cls):
        run("kubectl", "create", "namespace", cls.namespace)
        labels = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn", "audit")]
        run("kubectl", "label", "namespace", cls.namespace, *labels)

    def helm(self, *words, check=True):
        return run("helm", "-n", self.namespace, *words, check=check)

    def secret(self):
        found = run("kubectl", "-n", self.namespace, "get", "secret", "cairn-secrets", "-o", "json").stdout
        return {key: base64.b64decode(value).decode() for key, value in json.loads(found)["data"].items()}

    def await_kinds(self, wanted):
        """The garbage collector ends pods and replica sets some time after what owned them."""
        for _ in range(60):
            if set(self.kinds()) == wanted:
                return
            time.sleep(0.5)
        self.fail(f"{self.kinds()} is left, and should be {wanted}")

    def kinds(self):
        found = run("kubectl", "-n", self.namespace, "get", "all,pvc,networkpolicy,pdb,hpa,job", "-o", "name").stdout
        return sorted(line.split("/")[0].split(".")[0] for line in found.split())


class Mesh(Release):
    namespace = "mesh"

    def test_a_life(self):
        self.prepare()
        install = ["install", "cairn", CHART, *MESH, "--wait", "--timeout", "2m"]
        said = self.helm(*install)
        self.assertNotIn("would violate PodSecurity", said.stdout + said.stderr)
        for service in SERVICES:
            pods = ready(self.namespace, service)
            self.assertEqual(len(pods), 2, service)
            self.assertEqual(len({pod["spec"]["nodeName"] for pod in pods}), 2, f"{service} is not spread")
        self.helm("test", "cairn", "--timeout", "1m")
        self.assertFalse(items(self.namespace, "jobs"), "helm test leaves nothing")
        kept = self.secret()

        with Watch(self.namespace) as watch:
            self.helm("upgrade", "cairn", CHART, *MESH, "--set", "logFilter=debug", "--wait", "--timeout", "3m")
        self.assertGreaterEqual(min(watch.least.values()), 2, watch.least)
        self.assertEqual(self.secret(), kept, "an upgrade renews no secret")

        with Watch(self.namespace) as watch:
            broken = self.helm(
                "upgrade", "cairn", CHART, *MESH, "--set", "image.tag=broken", "--wait", "--timeout", "15s", check=False
            )
        self.assertNotEqual(broken.returncode, 0, "a broken image is told")
        self.assertGreaterEqual(min(watch.least.values()), 2, "the old pods go on")
        self.helm("rollback", "cairn", "2", "--wait", "--timeout", "3m")
        self.assertTrue(all(len(ready(self.namespace, service)) == 2 for service in SERVICES))

        self.evict_two()
        self.scale()
        self.helm("uninstall", "cairn", "--wait")
        self.await_kinds(set())
        self.assertEqual(self.secret(), kept, "the Secret stays")
        self.helm(*install)
        self.assertEqual(self.secret(), kept, "and is taken up again")
        self.helm("uninstall", "cairn", "--wait")

    def evict_two(self):
        answers = []
        for pod in ready(self.namespace, "auth"):
            name = pod["metadata"]["name"]
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": self.namespace},
            }
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
            done = subprocess.run(
                ["kubectl", "create", "--raw", path, "-f", "-"],
                input=json.dumps(eviction),
                capture_output=True,
                text=True,
                check=False,
            )
            answers.append(done.returncode)
        self.assertEqual([answers[0], answers[1] != 0], [0, True], "one at a time")
        self.wait_for("auth", 2)

    def scale(self):
        run("kubectl", "-n", self.namespace, "scale", "deployment/cairn-gateway", "--replicas=4")
        self.wait_for("gateway", 4)
        with Watch(self.namespace) as watch:
            more = ["--set", "gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=3"]
            self.helm("upgrade", "cairn", CHART, *MESH, *more, "--wait", "--timeout", "3m")
        self.assertGreaterEqual(watch.least["gateway"], 3, "turning it on takes no pod away")
        self.assertEqual([one["spec"]["minReplicas"] for one in items(self.namespace, "hpa")], [3])

    def wait_for(self, component, count):
        for _ in range(60):
            if len(ready(self.namespace, component)) == count:
                return
            time.sleep(0.5)
        self.fail(f"{component}: {len(ready(self.namespace, component))} of {count}")


class Single(Release):
    namespace = "single"

    def test_a_life(self):
        self.prepare()
        said = self.helm("install", "cairn", CHART, "--wait", "--timeout", "2m")
        self.assertNotIn("would violate PodSecurity", said.stdout + said.stderr)
        self.assertIn("search_context", said.stdout)
        self.assertEqual([claim["status"]["phase"] for claim in items(self.namespace, "pvc")], ["Bound"])
        self.helm("test", "cairn", "--timeout", "1m")
        kept = self.secret()
        self.helm("upgrade", "cairn", CHART, "--set", "logFilter=debug", "--wait", "--timeout", "2m")
        self.helm("rollback", "cairn", "1", "--wait", "--timeout", "2m")
        # Two releases beside each other.
        self.helm("install", "other", CHART, "--wait", "--timeout", "2m")
        self.helm("uninstall", "other", "--wait")
        self.helm("uninstall", "cairn", "--wait")
        self.await_kinds({"persistentvolumeclaim"})
        self.assertEqual(self.secret(), kept)
        self.helm("install", "cairn", CHART, "--wait", "--timeout", "2m")
        self.assertEqual(self.secret(), kept)
        self.assertEqual(len(items(self.namespace, "pvc")), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
