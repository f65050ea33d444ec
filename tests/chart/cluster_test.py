"""The life of a release on a real control plane, in both modes; tests/chart/cluster.sh starts it."""

import json
import unittest

import yaml

import registry
from control_plane import CHART, ROOT, Release, Watch, run

MESH = [
    "--set", "mode=mesh,database.existingSecret=pg,redis.existingSecret=redis,qdrant.url=http://qdrant:6334",
    "--set", "assets.url=s3://bucket/prefix,assets.existingSecret=s3",
]  # fmt: skip
# Without a bucket and Qdrant two services keep what they have on volumes.
MESH_WITH_VOLUMES = ["--set", "mode=mesh,database.existingSecret=pg"]
SERVICES = ["gateway", "auth", "content", "ingest", "retrieval", "sync"]
GOES_ON = ("--wait", "--timeout", "4m")
# Long enough for a pod that works, and not for one that never gets ready.
SOON = ("--wait", "--timeout", "20s")
LONGEST_NAME = "r" * 53
FOREIGN = ("gateway.networking.k8s.io", "monitoring.coreos.com", "cert-manager.io")


class Admission(Release):
    namespace = "admission"

    def test_what_is_not_restricted_is_refused(self):
        """Without this the other tests would show nothing about it."""
        run_as_root = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
        refused = self.kubectl("create", "-f", "-", check=False, given=json.dumps(run_as_root))
        self.assertIn("violates PodSecurity", refused.stderr)

    def test_the_api_server_takes_every_set_of_values(self):
        """By server-side apply, which also refuses lists in which a key stands twice; admission warns of what pods would be refused."""
        values = [*(ROOT / "deploy/helm/cairn/ci").glob("*.yaml"), *(ROOT / "deploy/helm/examples").glob("*.yaml")]
        self.assertGreater(len(values), 10)
        for path in values:
            rendered = run("helm", "-n", self.namespace, "template", "r", CHART, "--values", str(path)).stdout
            own = [item for item in yaml.safe_load_all(rendered) if item and not item["apiVersion"].startswith(FOREIGN)]
            taken = self.kubectl(
                "apply", "--server-side", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(own), check=False
            )
            self.assertEqual((taken.returncode, taken.stderr), (0, ""), path.name)

    def test_manifests_of_examples_are_taken(self):
        for name in ("dev-stores.yaml", "restore-job.yaml"):
            path = str(ROOT / "deploy/helm/examples/manifests" / name)
            taken = self.kubectl("apply", "--server-side", "--dry-run=server", "-f", path, check=False)
            self.assertEqual((taken.returncode, taken.stderr), (0, ""), name)


@unittest.skipUnless(registry.IS_HERE, "docker-registry is not here")
class Published(Release):
    namespace = "published"

    def test_it_installs_from_a_registry(self):
        with registry.pushed() as (reference, _):
            self.helm("install", "cairn", reference, "--plain-http", *GOES_ON)
        self.try_out()
        self.helm("uninstall", "cairn", "--wait")


class Mesh(Release):
    namespace = "mesh"

    def upgrade(self, *more, how=GOES_ON, check=True):
        return self.helm("upgrade", "cairn", CHART, *MESH, *more, *how, check=check)

    def test_a_life(self):
        self.helm("install", "cairn", CHART, *MESH, *GOES_ON)
        for service in SERVICES:
            self.assertEqual(len(set(self.nodes_of(service))), 2, f"{service} is not spread")
        self.try_out()
        kept = self.secret()
        with self.subTest("upgrade"):
            self.upgrade_without_a_gap()
            self.assertEqual(self.secret(), kept, "an upgrade renews no secret")
        with self.subTest("a broken image"):
            self.break_and_go_back()
        with self.subTest("evictions"):
            self.evict_two()
            self.drain()
        with self.subTest("autoscaling"):
            self.autoscale()
        with self.subTest("uninstall"):
            self.helm("uninstall", "cairn", "--wait")
            self.await_left(["secret/cairn-secrets"])
            self.assertEqual(self.secret(), kept, "the Secret stays")
            self.helm("install", "cairn", CHART, *MESH, *GOES_ON)
            self.assertEqual(self.secret(), kept, "and is taken up again")
            self.helm("uninstall", "cairn", "--wait")
            self.kubectl("delete", "secret,pvc", "-l", "app.kubernetes.io/instance=cairn")
            self.await_left([])

    def upgrade_without_a_gap(self):
        before = {pod["metadata"]["uid"] for service in SERVICES for pod in self.ready(service)}
        with Watch(self.namespace, SERVICES) as watch:
            self.upgrade("--set", "logFilter=debug,gateway.replicas=3,content.replicas=3")
        self.assertGreater(watch.events, 0)
        self.assertGreaterEqual(min(watch.least.values()), 2, watch.least)
        after = {pod["metadata"]["uid"] for service in SERVICES for pod in self.ready(service)}
        self.assertFalse(before & after, "every pod is a new one")
        for service in ("gateway", "content"):
            self.assertEqual(self.nodes_of(service), ["node-0", "node-1", "node-2"], service)

    def break_and_go_back(self):
        good = {pod["metadata"]["uid"] for service in SERVICES for pod in self.ready(service)}
        for how in (SOON, (*SOON, "--rollback-on-failure")):
            with Watch(self.namespace, SERVICES) as watch:
                broken = self.upgrade("--reuse-values", "--set", "image.tag=broken", how=how, check=False)
            self.assertNotEqual(broken.returncode, 0, "a broken image is told")
            self.assertGreaterEqual(min(watch.least.values()), 2, "the old pods go on")
            if how == SOON:
                history = json.loads(self.helm("history", "cairn", "-o", "json").stdout)
                self.assertEqual(history[-1]["status"], "failed")
                self.helm("rollback", "cairn", "2", *GOES_ON)
            self.await_that("no broken pod is left", lambda: not self.images("broken"))
            self.assertEqual(
                {pod["metadata"]["uid"] for service in SERVICES for pod in self.ready(service)}, good, "the good ones"
            )

    def images(self, part):
        pods = self.items("pods")
        return [one for pod in pods for container in pod["spec"]["containers"] if part in (one := container["image"])]

    def evict_two(self):
        for service in SERVICES:
            self.await_that(f"{service} may lose one", lambda service=service: self.allowed(service) == 1)
            first, second = (self.evict(pod) for pod in self.ready(service)[:2])
            self.assertEqual(first, "", service)
            self.assertRegex(second, r"TooManyRequests.*disruption budget", service)
        for service in SERVICES:
            self.await_that(f"{service} is whole", lambda service=service: self.allowed(service) == 1)

    def allowed(self, service):
        found = self.kubectl("get", "pdb", f"cairn-{service}", "-o", "json").stdout
        return json.loads(found)["status"]["disruptionsAllowed"]

    def drain(self):
        """A node with pods of most services gets empty, and none of them is ever without one."""
        with Watch(self.namespace, SERVICES) as watch:
            run("kubectl", "drain", "node-0", "--delete-emptydir-data", "--timeout=120s")
        self.assertGreaterEqual(min(watch.least.values()), 1, watch.least)
        self.assertFalse([pod for pod in self.items("pods") if pod["spec"].get("nodeName") == "node-0"])
        run("kubectl", "uncordon", "node-0")
        for service in SERVICES:
            self.await_that(f"{service} is whole", lambda service=service: self.allowed(service) == 1)

    def autoscale(self):
        """There are no metrics here, so the real autoscaler keeps counts within its bounds and does nothing else."""
        self.kubectl("scale", "deployment/cairn-gateway", "--replicas=5")
        self.await_that("five gateways", lambda: len(self.ready("gateway")) == 5)
        on = "gateway.autoscaling.enabled=true,gateway.autoscaling.maxReplicas=8,gateway.autoscaling.minReplicas="
        with Watch(self.namespace, SERVICES) as watch:
            self.upgrade("--set", f"{on}3")
        self.assertEqual(watch.least["gateway"], 5, "turning it on takes no pod away")
        self.upgrade("--set", f"{on}6")
        self.await_that("the autoscaler adds one", lambda: len(self.ready("gateway")) == 6)
        with Watch(self.namespace, SERVICES) as watch:
            self.upgrade("--set", f"{on}3,logFilter=info")
        self.assertEqual((watch.least["gateway"], len(self.ready("gateway"))), (6, 6), "an upgrade leaves its count")
        scaled = self.items("hpa")
        self.assertEqual([(one["spec"]["minReplicas"], one["status"]["desiredReplicas"]) for one in scaled], [(3, 6)])
        with Watch(self.namespace, SERVICES) as watch:
            broken = self.upgrade("--set", f"{on}3,image.tag=broken", how=(*SOON, "--rollback-on-failure"), check=False)
        self.assertNotEqual(broken.returncode, 0)
        history = json.loads(self.helm("history", "cairn", "-o", "json").stdout)
        self.assertEqual((history[-1]["status"], watch.least["gateway"]), ("deployed", 6), "neither does the way back")
        refused = self.upgrade(check=False)
        self.assertIn("conflict", refused.stderr, "Helm 4 does not take the count from who has set it")
        self.upgrade("--force-conflicts")
        self.await_that("autoscaling is off", lambda: len(self.ready("gateway")) == 2 and not self.items("hpa"))


class Volumes(Release):
    namespace = "volumes"

    def test_data_of_a_mesh_survives(self):
        self.helm("install", "cairn", CHART, *MESH_WITH_VOLUMES, *GOES_ON)
        volumes = self.volumes()
        self.assertEqual(sorted(volumes), ["cairn-content", "cairn-retrieval"])
        self.helm("upgrade", "cairn", CHART, *MESH_WITH_VOLUMES, "--set", "logFilter=debug", *GOES_ON)
        self.helm("uninstall", "cairn", "--wait")
        kept = ["persistentvolumeclaim/cairn-content", "persistentvolumeclaim/cairn-retrieval", "secret/cairn-secrets"]
        self.await_left(kept)
        self.helm("install", "cairn", CHART, *MESH_WITH_VOLUMES, *GOES_ON)
        self.assertEqual(self.volumes(), volumes, "the same ones are taken up again")

    def volumes(self):
        return {claim["metadata"]["name"]: claim["spec"]["volumeName"] for claim in self.items("pvc")}


class Single(Release):
    namespace = "single"

    def test_a_life(self):
        said = self.helm("install", "cairn", CHART, *GOES_ON)
        self.assertIn("search_context", said.stdout)
        volume = self.volume()
        self.try_out()
        kept = self.secret()
        self.helm("upgrade", "cairn", CHART, "--set", "logFilter=debug", *GOES_ON)
        self.helm("rollback", "cairn", "1", *GOES_ON)
        with self.subTest("a broken image"):
            self.break_and_go_back()
        with self.subTest("a drained node"):
            self.drain()
        self.helm("uninstall", "cairn", "--wait")
        self.await_left(["persistentvolumeclaim/data-cairn-single-0", "secret/cairn-secrets"])
        self.assertEqual(self.secret(), kept)
        self.helm("install", "cairn", CHART, *GOES_ON)
        self.assertEqual((self.secret(), self.volume()), (kept, volume), "both are taken up again")
        self.helm("uninstall", "cairn", "--wait")
        self.kubectl("delete", "secret,pvc", "-l", "app.kubernetes.io/instance=cairn")
        self.await_left([])

    def volume(self):
        claim = json.loads(self.kubectl("get", "pvc", "data-cairn-single-0", "-o", "json").stdout)
        self.assertEqual(claim["status"]["phase"], "Bound")
        return claim["spec"]["volumeName"]

    def break_and_go_back(self):
        broken = self.helm("upgrade", "cairn", CHART, "--set", "image.tag=broken", *SOON, check=False)
        self.assertNotEqual(broken.returncode, 0, "a broken image is told")
        self.helm("rollback", "cairn", *GOES_ON)
        self.assertEqual(len(self.ready("single")), 1, "nobody has to delete the broken pod")

    def drain(self):
        node = self.ready("single")[0]["spec"]["nodeName"]
        run("kubectl", "drain", node, "--delete-emptydir-data", "--timeout=60s")
        self.await_that("it runs on another node", lambda: len(self.ready("single")) == 1)
        self.assertNotEqual(self.ready("single")[0]["spec"]["nodeName"], node)
        run("kubectl", "uncordon", node)


class Backup(Release):
    namespace = "backup"

    def test_a_backup_runs_beside_the_pod(self):
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "backups"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        self.kubectl("create", "-f", "-", given=json.dumps(claim))
        values = ("--set", "backup.enabled=true,backup.existingClaim=backups,backup.suspend=true")
        self.helm("install", "cairn", CHART, *values, *GOES_ON)
        self.back_up("first")
        self.kubectl("scale", "statefulset/cairn-single", "--replicas=0")
        self.await_that("the pod has ended", lambda: not self.items("pods", "app.kubernetes.io/component=single"))
        self.kubectl("create", "job", "--from=cronjob/cairn-backup", "waiting")
        unscheduled = "--for=jsonpath={.status.conditions[0].reason}=Unschedulable"
        self.await_that("its pod is there", lambda: self.items("pods", "job-name=waiting"))
        self.kubectl("wait", unscheduled, "pod", "-l", "job-name=waiting", "--timeout=60s")
        self.kubectl("scale", "statefulset/cairn-single", "--replicas=1")
        self.kubectl("wait", "--for=condition=complete", "job/waiting", "--timeout=60s")
        self.helm("uninstall", "cairn", "--wait")
        self.kubectl("delete", "job", "first", "waiting", "--ignore-not-found")
        self.await_left([
            "persistentvolumeclaim/backups", "persistentvolumeclaim/data-cairn-single-0", "secret/cairn-secrets"
        ])  # fmt: skip

    def back_up(self, name):
        self.kubectl("create", "job", "--from=cronjob/cairn-backup", name)
        self.kubectl("wait", "--for=condition=complete", f"job/{name}", "--timeout=60s")
        pod = self.items("pods", f"job-name={name}")[0]
        self.assertEqual(pod["spec"]["nodeName"], self.ready("single")[0]["spec"]["nodeName"])


class Names(Release):
    namespace = "names"

    def test_releases_beside_each_other_and_the_longest_name(self):
        for release, mode in [("cairn", []), ("other", []), ("meshed", MESH), (LONGEST_NAME, MESH)]:
            self.helm("install", release, CHART, *mode, *GOES_ON)
        for release, component in [("cairn", "single"), ("other", "single"), ("meshed", "sync"), (LONGEST_NAME, "sync")]:
            self.assertEqual(len(self.ready(component, release)), 1 if component == "single" else 2, release)
        self.try_out(LONGEST_NAME)
        # What selects pods of one selects none of another.
        for service in self.items("endpointslices"):
            owner = service["metadata"]["labels"]["app.kubernetes.io/instance"]
            pods = [end["targetRef"]["name"] for end in service["endpoints"]]
            for pod in pods:
                found = json.loads(self.kubectl("get", "pod", pod, "-o", "json").stdout)
                self.assertEqual(found["metadata"]["labels"]["app.kubernetes.io/instance"], owner)
        self.helm("uninstall", LONGEST_NAME, "--wait")
        single = LONGEST_NAME.replace("r", "s")
        self.helm("install", single, CHART, "--set", "backup.enabled=true,backup.url=s3://b", *GOES_ON)
        self.try_out(single)
        self.assertEqual(len(self.ready("sync", "meshed")), 2)
        for release in ("cairn", "other", "meshed", single):
            self.helm("uninstall", release, "--wait")
        claims = [f"persistentvolumeclaim/data-{name}-single-0" for name in ("cairn", "other-cairn", single[:45])]
        names = ("cairn", "meshed-cairn", "other-cairn", LONGEST_NAME[:50], single[:50])
        self.await_left(sorted([*claims, *(f"secret/{name}-secrets" for name in names)]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
