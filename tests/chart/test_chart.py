"""The chart as text: what it renders, for all values that are shipped, and what it refuses."""

import base64
import re
import unittest
import zlib

import kubernetes_validate
import yaml

from rendering import (
    CHART,
    COMPONENT,
    FOREIGN,
    MESH,
    ROOT,
    SERVICES,
    containers,
    environment,
    helm,
    kind,
    objects,
    pods,
    refusal,
    service,
    text,
    value_sets,
)

# Who calls whom and where (docs/OPERATIONS.md, "The mesh").
CALLS = {
    "gateway": {"auth", "content", "ingest", "retrieval", "sync"},
    "auth": {"content", "ingest", "retrieval", "sync"},
    "content": {"auth", "ingest"},
    "ingest": {"auth", "content"},
    "retrieval": {"auth", "content", "ingest"},
    "sync": {"auth", "content"},
}
STORES = {
    "gateway": {6379},
    "auth": {5432, 443},
    "content": {5432, 443},
    "ingest": {5432, 443},
    "retrieval": {5432, 6334},
    "sync": {5432},
}
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_well_formed(token):
    """chassis/src/token_format.rs"""
    rest, digits = zlib.crc32(token[:46].encode()), ""
    for _ in range(6):
        rest, digits = rest // 62, ALPHABET[rest % 62] + digits
    return bool(re.fullmatch(r"cairn_[0-9A-Za-z]{46}", token)) and token[46:] == digits


class Schemas(unittest.TestCase):
    def test_every_object_is_what_kubernetes_takes(self):
        for version in ("1.31", "1.37"):
            for values in value_sets():
                for item in objects(values=values, kube=f"v{version}.0"):
                    if not item["apiVersion"].startswith(FOREIGN):
                        with self.subTest(version=version, values=values.name, item=item["metadata"]["name"]):
                            kubernetes_validate.validate(item, version, strict=True)

    def test_newer_clusters_are_not(self):
        for minor in range(30, 38):
            for settings in ((), MESH):
                self.assertTrue(objects(*settings, kube=f"v1.{minor}.0"), minor)

    def test_older_clusters_are_refused(self):
        status, _, error = helm("template", "r", str(CHART), "--kube-version", "v1.24.0")
        self.assertTrue(status and "kubeVersion" in error, error)

    def test_manifests_of_examples_can_be_read(self):
        for path in (ROOT / "deploy/helm/examples/manifests").glob("*.yaml"):
            for item in yaml.safe_load_all(path.read_text()):
                if isinstance(item, dict) and item.get("apiVersion") in ("v1", "apps/v1", "batch/v1"):
                    kubernetes_validate.validate(item, "1.37", strict=True)

    def test_values_are_refused_when_they_are_none(self):
        for setting in (
            "mod=mesh",
            "mode=cluster",
            "gateway.replica=3",
            "gateway.replicas=many",
            "gateway.autoscaling.max=3",
            "image.pullpolicy=Always",
            "secrets.keys.mesh=a",
            "networkPolicy.ports.postgres=5432",
            "single.persistence.sizes=1Gi",
            "database.connections=1",
            "baseUrl=cairn.example.com",
            "image.digest=sha256:1",
            "backup.every=1h",
            "backup.schedule=hourly",
            "backup.keep=0",
        ):
            self.assertRegex(refusal(setting), "(?i)schema|additional", setting)

    def test_what_loses_data_is_refused_by_the_key(self):
        mesh = MESH[:2]
        for key, settings in {
            "database.existingSecret": ["mode=mesh"],
            "assets.url": [*mesh, "content.replicas=2"],
            "content.replicas": [*mesh, "content.autoscaling.enabled=true"],
            "qdrant.url": [*mesh, "retrieval.replicas=3"],
            "content.persistence.enabled": [*mesh, "content.persistence.enabled=false"],
            "tls.issuerRef.name": [*mesh, "tls.enabled=true"],
            "tls.enabled": ["tls.enabled=true"],
            "mode: mesh": ["database.existingSecret=pg"],
            "gateway.terminationGracePeriodSeconds": [*mesh, "gateway.terminationGracePeriodSeconds=20"],
            "gateway.autoscaling.minReplicas": [
                *mesh,
                "gateway.autoscaling.enabled=true",
                "gateway.autoscaling.minReplicas=20",
            ],
            "baseUrl": ["ingress.enabled=true"],
            "httpRoute.parentRefs": ["httpRoute.enabled=true", "baseUrl=https://a.example"],
            "assets.existingSecret": ["assets.url=s3://key@bucket"],
            "mail.from": ["mail.existingSecret=mail"],
        }.items():
            self.assertIn(key, refusal(*settings), settings)


class Pods(unittest.TestCase):
    def all(self):
        for values in value_sets():
            for name, template in pods(objects(values=values)).items():
                with self.subTest(values=values.name, pod=name):
                    yield name, template

    def test_they_fit_the_restricted_standard(self):
        for _, template in self.all():
            spec = template["spec"]
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & spec.keys())
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            kinds = {key for volume in spec["volumes"] for key in volume if key != "name"}
            self.assertLessEqual(kinds, {"configMap", "emptyDir", "projected", "secret", "persistentVolumeClaim"})
            for container in containers(template):
                security = container["securityContext"]
                self.assertIs(security["allowPrivilegeEscalation"], False)
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                self.assertIs(security["readOnlyRootFilesystem"], True)
                self.assertGreater(security["runAsUser"], 0)

    def test_they_ask_the_api_server_nothing(self):
        for _, template in self.all():
            self.assertIs(template["spec"]["automountServiceAccountToken"], False)
            self.assertIs(template["spec"]["enableServiceLinks"], False)
        for values in value_sets():
            self.assertFalse({"Role", "ClusterRole", "RoleBinding"} & {item["kind"] for item in objects(values=values)})

    def test_they_say_what_they_need(self):
        for _, template in self.all():
            for container in containers(template):
                resources = container["resources"]
                self.assertLessEqual({"cpu", "memory"}, resources["requests"].keys())
                self.assertIn("memory", resources["limits"])

    def test_probes_and_the_end(self):
        for name, template in self.all():
            if name.startswith(("Job/", "CronJob/")):
                continue
            container = template["spec"]["containers"][0]
            for probe, path in {"startup": "/readyz", "readiness": "/readyz", "liveness": "/healthz"}.items():
                asked = container[f"{probe}Probe"]["httpGet"]
                self.assertEqual((asked["path"], asked["port"]), (path, "admin"))
            patience = {
                probe: container[f"{probe}Probe"]["periodSeconds"] * container[f"{probe}Probe"]["failureThreshold"]
                for probe in ("startup", "liveness")
            }
            self.assertGreaterEqual(patience["startup"], 120)
            self.assertGreaterEqual(patience["liveness"], 30)
            sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
            told = environment(container)
            drain = sum(int(told[f"CAIRN_{name}_SECONDS"]["value"]) for name in ("SHUTDOWN_DELAY", "DRAIN_LIMIT"))
            self.assertGreaterEqual(template["spec"]["terminationGracePeriodSeconds"], sleep + drain + 5)
            self.assertIn({"name": "admin", "containerPort": 9090, "protocol": "TCP"}, container["ports"])

    def test_they_are_spread_and_rolled(self):
        found = objects(*MESH)
        for name, deployment in kind("Deployment", found).items():
            spec = deployment["spec"]
            self.assertEqual(spec["strategy"]["rollingUpdate"], {"maxUnavailable": 0, "maxSurge": 1}, name)
            keys = [spread["topologyKey"] for spread in spec["template"]["spec"]["topologySpreadConstraints"]]
            self.assertEqual(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"])
        budgets = kind("PodDisruptionBudget", found)
        self.assertEqual(set(budgets), {f"release-cairn-{service}" for service in SERVICES})
        self.assertEqual({budget["spec"]["maxUnavailable"] for budget in budgets.values()}, {1})

    def test_one_pod_of_what_has_a_volume(self):
        found = objects(*MESH[:2])
        for name in ("content", "retrieval"):
            deployment = kind("Deployment", found)[f"release-cairn-{name}"]
            self.assertEqual((deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]), (1, "Recreate"))
            claim = kind("PersistentVolumeClaim", found)[f"release-cairn-{name}"]
            self.assertEqual(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")
            self.assertNotIn(f"release-cairn-{name}", kind("PodDisruptionBudget", found))

    def test_an_autoscaler_owns_the_count(self):
        found = objects(*MESH, "gateway.autoscaling.enabled=true")
        self.assertNotIn("replicas", kind("Deployment", found)["release-cairn-gateway"]["spec"])
        self.assertIn("release-cairn-gateway", kind("HorizontalPodAutoscaler", found))
        self.assertEqual(kind("Deployment", found)["release-cairn-auth"]["spec"]["replicas"], 2)

    def test_every_extra_reaches_its_pod(self):
        found = objects(values=CHART / "ci/everything-values.yaml")
        template = kind("Deployment", found)["release-cairn-gateway"]["spec"]["template"]
        spec, container = template["spec"], template["spec"]["containers"][0]
        self.assertEqual(environment(container)["EXTRA"]["value"], "release")
        self.assertEqual(container["args"][-2:], ["--max-connections", "4096"])
        self.assertEqual(container["envFrom"], [{"configMapRef": {"name": "more"}}])
        self.assertIn({"name": "more", "mountPath": "/more"}, container["volumeMounts"])
        self.assertIn({"name": "more", "emptyDir": {}}, spec["volumes"])
        self.assertEqual(template["metadata"]["labels"]["tier"], "edge")
        self.assertEqual(template["metadata"]["annotations"]["example.com/one"], "yes")
        self.assertEqual((spec["nodeSelector"], spec["priorityClassName"]), ({"kubernetes.io/arch": "amd64"}, "high"))
        self.assertEqual(spec["tolerations"][0]["key"], "edge")
        self.assertEqual(spec["topologySpreadConstraints"][0]["topologyKey"], "zone")
        self.assertIn("release-more", kind("ConfigMap", found))

    def test_the_same_ones_reach_every_component(self):
        values = {
            "podLabels.tier": "a",
            "podAnnotations.note": "b",
            "nodeSelector.kind": "c",
            "priorityClassName": "d",
            "tolerations[0].key": "e",
            "affinity.nodeAffinity.f": "f",
            "extraArgs[0]": "--g",
            "extraEnv[0].name": "H",
            "extraEnvFrom[0].configMapRef.name": "i",
            "extraVolumes[0].name": "j",
            "extraVolumeMounts[0].mountPath": "/k",
        }
        for component, mode in [(name, MESH) for name in SERVICES] + [("single", ())]:
            settings = [f"{component}.{key}={value}-{component}" for key, value in values.items()]
            settings.append(f"{component}.extraVolumeMounts[0].name=j-{component}")
            found = pods(objects(*mode, *settings)).values()
            reached = next(str(pod) for pod in found if pod["metadata"]["labels"][COMPONENT] == component)
            missing = [key for key, value in values.items() if f"'{value}-{component}'" not in reached]
            self.assertEqual(missing, [], component)

    def test_image_and_labels_reach_everything(self):
        found = objects(values=CHART / "ci/everything-values.yaml")
        for item in found:
            if item["metadata"]["name"] != "release-more":
                self.assertEqual(item["metadata"]["labels"]["team"], "knowledge", item["metadata"]["name"])
        for template in pods(found).values():
            self.assertEqual(template["spec"]["imagePullSecrets"], [{"name": "pull-a"}, {"name": "pull-b"}])
            self.assertEqual(template["metadata"]["labels"]["cost-centre"], "42")
            for container in containers(template):
                self.assertRegex(container["image"], r"^registry\.example\.com/cairn@sha256:")

    def test_names_hold_for_long_releases_and_do_not_follow_versions(self):
        one_pod = objects("backup.enabled=true", "backup.url=s3://b", release="r" * 53)
        for item in [*objects(*MESH, release="r" * 53), *one_pod]:
            # A StatefulSet makes a label of its name and more, a CronJob names.
            longest = 52 if item["kind"] in ("StatefulSet", "CronJob") else 63
            self.assertLessEqual(len(item["metadata"]["name"]), longest, item["kind"])
        first, second = (objects(*MESH, f"image.tag={tag}") for tag in ("one", "two"))
        for one, other in zip(first, second, strict=True):
            self.assertEqual(one["metadata"]["name"], other["metadata"]["name"])
            self.assertEqual(one.get("spec", {}).get("selector"), other.get("spec", {}).get("selector"))
        here = {(item["kind"], item["metadata"]["name"]) for item in first}
        self.assertFalse(here & {(item["kind"], item["metadata"]["name"]) for item in objects(*MESH, release="other")})


class Edges(unittest.TestCase):
    def reached(self, policy):
        """Components with ports, and ports alone, of a policy's egress."""
        components, ports = {}, set()
        for rule in policy["spec"]["egress"]:
            numbers = {port["port"] for port in rule["ports"]}
            if "to" in rule:
                for peer in rule["to"]:
                    components[peer["podSelector"]["matchLabels"][COMPONENT]] = numbers
            else:
                ports |= numbers
        return components, ports

    def test_they_are_those_of_the_mesh_closed_on_both_sides(self):
        found = kind("NetworkPolicy", objects(*MESH))
        for caller in SERVICES:
            policy = found[f"release-cairn-{caller}"]
            self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"])
            components, ports = self.reached(policy)
            self.assertEqual(set(components), CALLS[caller], caller)
            self.assertEqual(ports, STORES[caller] | {53}, caller)
            for called in CALLS[caller]:
                entry = next(
                    rule
                    for rule in found[f"release-cairn-{called}"]["spec"]["ingress"]
                    if rule["ports"][0]["port"] == "grpc"
                )
                allowed = {peer["podSelector"]["matchLabels"][COMPONENT] for peer in entry["from"]}
                self.assertEqual(allowed, {name for name in SERVICES if called in CALLS[name]}, called)

    def test_nothing_is_open_without_a_port(self):
        for values in value_sets():
            for policy in kind("NetworkPolicy", objects(values=values)).values():
                for rule in policy["spec"]["ingress"] + policy["spec"]["egress"]:
                    self.assertTrue(rule.get("ports"), policy["metadata"]["name"])
                for rule in policy["spec"]["ingress"]:
                    if rule["ports"][0]["port"] == "admin":
                        self.assertTrue(rule["from"])

    def test_grpc_opens_by_one_value(self):
        found = kind("NetworkPolicy", objects(values=CHART / "ci/everything-values.yaml"))
        peers = found["release-cairn-auth"]["spec"]["ingress"][0]["from"]
        self.assertIn({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "programs"}}}, peers)
        found = objects(*MESH, "gateway.grpcFrom[0].podSelector.matchLabels.program=here")
        self.assertIn("--grpc-listen", service("gateway", found)["args"])
        self.assertIn(8701, [port["port"] for port in kind("Service", found)["release-cairn-gateway"]["spec"]["ports"]])
        rules = kind("NetworkPolicy", found)["release-cairn-gateway"]["spec"]["ingress"]
        self.assertIn(
            {"podSelector": {"matchLabels": {"program": "here"}}},
            [peer for rule in rules for peer in rule.get("from", [])],
        )

    def test_services_lead_where_they_should(self):
        found = kind("Service", objects(*MESH))
        for name in SERVICES[1:]:
            spec = found[f"release-cairn-{name}"]["spec"]
            self.assertEqual(spec["clusterIP"], "None")
            self.assertEqual((spec["ports"][0]["name"], spec["ports"][0]["appProtocol"]), ("grpc", "kubernetes.io/h2c"))
        front = found["release-cairn-gateway"]["spec"]
        self.assertEqual(
            [(port["name"], port["port"], port["targetPort"]) for port in front["ports"]], [("http", 80, "http")]
        )
        found = objects(values=CHART / "ci/everything-values.yaml")
        backend = kind("Ingress", found)["release-cairn-gateway"]["spec"]["rules"][0]["http"]["paths"][0]["backend"][
            "service"
        ]
        self.assertEqual(backend, {"name": "release-cairn-gateway", "port": {"name": "http"}})
        backend = kind("HTTPRoute", found)["release-cairn-gateway"]["spec"]["rules"][0]["backendRefs"]
        self.assertEqual(backend, [{"name": "release-cairn-gateway", "port": 80}])

    def test_each_pod_is_scraped_once(self):
        found = objects(values=CHART / "ci/everything-values.yaml")
        monitor = next(iter(kind("ServiceMonitor", found).values()))["spec"]
        self.assertEqual(monitor["endpoints"][0]["port"], "admin")
        scraped = [
            item["spec"]["selector"][COMPONENT]
            for item in kind("Service", found).values()
            if monitor["selector"]["matchLabels"].items() <= item["metadata"]["labels"].items()
            and any(port["name"] == "admin" for port in item["spec"]["ports"])
        ]
        self.assertEqual(sorted(scraped), sorted(SERVICES))


class Secrets(unittest.TestCase):
    def test_what_is_made_is_what_the_binary_takes(self):
        data = kind("Secret", objects())["release-cairn-secrets"]
        self.assertEqual(data["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")
        read = {key: base64.b64decode(value).decode() for key, value in data["data"].items()}
        self.assertEqual(len(base64.b64decode(read["secret-key"], validate=True)), 32)
        self.assertGreaterEqual(len(read["mesh-secret"]), 16)
        self.assertTrue(is_well_formed(read["bootstrap-token"]), "the checksum of the token")

    def test_with_yours_nothing_is_made(self):
        settings = (*MESH, "secrets.existingSecret=mine")
        self.assertFalse(kind("Secret", objects(*settings)))
        again = [word for setting in settings for word in ("--set", setting)]
        self.assertEqual(text(*settings), helm("template", "release", str(CHART), *again, "--namespace", "here")[1])

    def test_they_come_by_reference_and_only_where_they_are_used(self):
        found = objects(values=CHART / "ci/everything-values.yaml")
        users = {
            "CAIRN_MESH_SECRET": set(SERVICES),
            "CAIRN_DATABASE_URL": set(SERVICES) - {"gateway"},
            "CAIRN_SECRET_KEY": {"auth", "ingest"},
            "CAIRN_BOOTSTRAP_PASSWORD": {"auth"},
            "CAIRN_REDIS_URL": {"gateway"},
            "CAIRN_QDRANT_API_KEY": {"retrieval"},
            "AWS_SECRET_ACCESS_KEY": {"content"},
            "CAIRN_SMTP_URL": {"auth"},
            "CAIRN_OIDC_CLIENT_SECRET": {"auth"},
            "CAIRN_EMBEDDER_KEY": {"retrieval"},
            "CAIRN_RERANKER_KEY": {"retrieval"},
        }
        for variable, wanted in users.items():
            having = {name for name in SERVICES if variable in environment(service(name, found))}
            self.assertEqual(having, wanted, variable)
            for name in wanted:
                self.assertIn("secretKeyRef", environment(service(name, found))[variable]["valueFrom"])
        own = environment(service("auth", found))["CAIRN_DATABASE_URL"]["valueFrom"]["secretKeyRef"]
        self.assertEqual(own, {"name": "pg-auth", "key": "uri"})

    def test_no_value_of_one_stands_anywhere_else(self):
        status, said, error = helm("install", "r", str(CHART), "--dry-run=client")
        self.assertEqual(status, 0, error)
        manifests, notes = said[said.index("---") :].split("NOTES:", 1)
        found = [item for item in yaml.safe_load_all(manifests) if item]
        kept = [value for item in found if item["kind"] == "Secret" for value in item["data"].values()]
        rest = str([item for item in found if item["kind"] != "Secret"]) + notes
        self.assertEqual(len(kept), 4)
        for value in kept:
            self.assertNotIn(value, rest)
            self.assertNotIn(base64.b64decode(value).decode(), rest)

    def test_or_as_files(self):
        found = objects(*MESH, "secrets.as=files")
        container = service("content", found)
        told = environment(container)
        self.assertEqual(told["CAIRN_DATABASE_URL_FILE"]["value"], "/etc/cairn/secrets/CAIRN_DATABASE_URL")
        self.assertFalse([name for name, variable in told.items() if "secretKeyRef" in variable.get("valueFrom", {})])
        self.assertIn(
            {"name": "secrets", "mountPath": "/etc/cairn/secrets", "readOnly": True}, container["volumeMounts"]
        )

    def test_mutual_tls(self):
        found = objects(*MESH, "tls.enabled=true", "tls.issuerRef.name=mesh")
        certificates = kind("Certificate", found)
        self.assertEqual(set(certificates), {f"release-cairn-{name}" for name in SERVICES})
        for name in SERVICES:
            told = environment(service(name, found))
            self.assertNotIn("CAIRN_INSECURE_MESH", told)
            self.assertEqual("CAIRN_TLS_CLIENT_CA" in told, name != "gateway")
            for called in CALLS[name]:
                url = told[f"CAIRN_{called.upper()}_URL"]["value"]
                host = re.fullmatch(r"https://([a-z-]+):\d+", url).group(1)
                self.assertIn(host, certificates[f"release-cairn-{called}"]["spec"]["dnsNames"])


class Modes(unittest.TestCase):
    def test_no_value_is_needed(self):
        found = objects()
        stateful = kind("StatefulSet", found)["release-cairn-single"]["spec"]
        self.assertEqual((stateful["replicas"], stateful["podManagementPolicy"]), (1, "Parallel"))
        self.assertEqual(
            stateful["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Retain", "whenScaled": "Retain"}
        )
        labels = stateful["volumeClaimTemplates"][0]["metadata"]["labels"]
        self.assertFalse([label for label in labels if "version" in label or "chart" in label])
        self.assertIn("--quiet", service("single", found)["args"])

    def test_empty_values_are_left_out(self):
        for values in value_sets():
            for name, template in pods(objects(values=values)).items():
                for container in containers(template):
                    for variable in container["env"]:
                        self.assertNotEqual(variable.get("value"), "", (values.name, name, variable["name"]))

    def test_notes_lead_to_the_first_question(self):
        status, notes, error = helm("install", "r", str(CHART), "--dry-run=client", "--namespace", "here")
        self.assertEqual(status, 0, error)
        notes = notes[notes.index("NOTES") :]
        for part in ("port-forward service/r-cairn-single 8700:80", "r-cairn-secrets", "search_context", "/mcp"):
            self.assertIn(part, notes)

    def test_helm_test_is_a_job_that_asks(self):
        job = kind("Job", objects())["release-cairn-test"]
        self.assertEqual(
            job["metadata"]["annotations"]["helm.sh/hook-delete-policy"], "before-hook-creation,hook-succeeded"
        )
        steps = [container["args"][0] for container in containers(job["spec"]["template"])]
        self.assertEqual(steps, ["health", "sync", "search", "exec", "sync", "health"])
        job = kind("Job", objects("secrets.existingSecret=mine"))["release-cairn-test"]
        self.assertEqual([container["args"][0] for container in containers(job["spec"]["template"])], ["health"])


if __name__ == "__main__":
    unittest.main()
