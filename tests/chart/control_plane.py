"""What the tests on a control plane share: commands, and looks at what it has."""

import base64
import json
import pathlib
import subprocess
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = str(ROOT / "deploy/helm/cairn")
COMPONENT = "app.kubernetes.io/component"
PATIENCE_SECONDS = 60
# What every namespace has, and what only tells of what was.
NOT_OF_A_RELEASE = ("configmap/kube-root-ca.crt", "serviceaccount/default", "event/", "event.events.k8s.io/", "lease.")


def run(*command, check=True, given=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, input=given)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


def is_ready(pod):
    """Whether it gets requests: ready, and nobody has asked it to end."""
    conditions = pod["status"].get("conditions", [])
    has_condition = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return has_condition and "deletionTimestamp" not in pod["metadata"]


class Watch:
    """The least number of ready pods of each component while something happens, of every state that the API server tells of."""

    def __init__(self, namespace, components):
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.components, self.pods = components, {}

    def __enter__(self):
        found = json.loads(run("kubectl", "get", "--raw", self.path).stdout)
        self.pods = {pod["metadata"]["uid"]: pod for pod in found["items"]}
        self.least = {name: self.count(name) for name in self.components}
        version = found["metadata"]["resourceVersion"]
        path = f"{self.path}?watch=1&resourceVersion={version}"
        self.kubectl = subprocess.Popen(["kubectl", "get", "--raw", path], stdout=subprocess.PIPE, text=True)
        self.events, self.thread = 0, threading.Thread(target=self.follow)
        self.thread.start()
        return self

    def count(self, component):
        return sum(is_ready(pod) and pod["metadata"]["labels"].get(COMPONENT) == component for pod in self.pods.values())

    def follow(self):
        for line in self.kubectl.stdout:
            event = json.loads(line)
            pod, self.events = event["object"], self.events + 1
            if event["type"] == "DELETED":
                self.pods.pop(pod["metadata"]["uid"], None)
            else:
                self.pods[pod["metadata"]["uid"]] = pod
            for name in self.components:
                self.least[name] = min(self.least[name], self.count(name))

    def __exit__(self, *_):
        self.kubectl.terminate()
        self.thread.join()
        self.kubectl.stdout.close()
        self.kubectl.wait()


class Release(unittest.TestCase):
    """A namespace that enforces the restricted standard, so the real admission plugin judges every pod."""

    maxDiff = None
    namespace = ""

    @classmethod
    def setUpClass(cls):
        run("kubectl", "create", "namespace", cls.namespace)
        labels = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn", "audit")]
        run("kubectl", "label", "namespace", cls.namespace, *labels)

    def setUp(self):
        self.await_that("the account of pods is there", lambda: self.has("serviceaccount/default"))

    def kubectl(self, *words, check=True, given=None):
        return run("kubectl", "-n", self.namespace, *words, check=check, given=given)

    def helm(self, *words, check=True):
        done = run("helm", "-n", self.namespace, *words, check=check)
        self.assertNotIn("would violate PodSecurity", done.stdout + done.stderr)
        return done

    def items(self, kind, selector=""):
        return json.loads(self.kubectl("get", kind, "-l", selector, "-o", "json").stdout)["items"]

    def has(self, name):
        return self.kubectl("get", name, check=False).returncode == 0

    def ready(self, component, release="cairn"):
        selector = f"{COMPONENT}={component},app.kubernetes.io/instance={release}"
        return [pod for pod in self.items("pods", selector) if is_ready(pod)]

    def nodes_of(self, component):
        return sorted(pod["spec"]["nodeName"] for pod in self.ready(component))

    def secret(self):
        found = json.loads(self.kubectl("get", "secret", "cairn-secrets", "-o", "json").stdout)
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    def await_that(self, what, holds):
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.3)
        self.fail(f"not within {PATIENCE_SECONDS} seconds: {what}")

    def await_left(self, wanted):
        """The garbage collector ends pods and replica sets some time after what owned them."""
        self.await_equal(self.everything, wanted)

    def await_equal(self, found, wanted):
        """Fails with what was found at last."""
        last = None

        def is_wanted():
            nonlocal last
            last = found()
            return last == wanted

        try:
            self.await_that(f"{wanted}", is_wanted)
        except AssertionError:
            self.assertEqual(last, wanted)

    def everything(self):
        """The names of all objects of the namespace, of whatever kind."""
        kinds = run("kubectl", "api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
        found = self.kubectl("get", ",".join(kinds), "-o", "name", "--ignore-not-found").stdout.split()
        return sorted(name for name in found if not name.startswith(NOT_OF_A_RELEASE))

    def evict(self, pod):
        """What the API server says: nothing when it does."""
        name = pod["metadata"]["name"]
        metadata = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
        done = run("kubectl", "create", "--raw", path, "-f", "-", check=False, given=json.dumps(body))
        return done.stderr if done.returncode else ""

    def try_out(self, release="cairn"):
        """`helm test` passes and leaves nothing. Pods of an earlier release may end meanwhile: only what is new counts."""
        before = set(self.everything())
        self.helm("test", release, "--timeout", "2m")
        self.await_equal(lambda: [name for name in self.everything() if name not in before], [])
