"""What is said in two places is the same in both: metrics, options, ports, versions, alerts and their runbooks."""

import json
import pathlib
import re
import tempfile
import unittest

import yaml

from rendering import CHART, ROOT, SERVICES, containers, environment, helm, objects, pods, sources, value_sets

ALERTS = ROOT / "deploy/alerts/cairn.yaml"
DASHBOARDS = sorted((ROOT / "deploy/dashboards").glob("*.json"))
# Of Prometheus, the kubelet, kube-state-metrics and cert-manager.
FOREIGN = {
    "up",
    "kube_pod_container_status_restarts_total",
    "kube_pod_container_resource_requests",
    "kube_cronjob_status_last_schedule_time",
    "kube_cronjob_status_last_successful_time",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
    "certmanager_certificate_expiration_timestamp_seconds",
    "container_cpu_usage_seconds_total",
    "container_cpu_cfs_throttled_seconds_total",
}
# Read by the runtime, the allocator and libraries, not as options.
OTHER_VARIABLES = {
    "POD_NAME", "POD_NAMESPACE", "NODE_NAME", "CAIRN_LOG", "TOKIO_WORKER_THREADS", "MALLOC_ARENA_MAX",
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_RESOURCE_ATTRIBUTES", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "HOME",
    "EXTRA",
}  # fmt: skip


def alerts():
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def records():
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def expressions():
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            yield from (target["expr"] for target in panel.get("targets", []))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["query"]["query"].removeprefix("label_values(").rsplit(",", 1)[0]


def asked(expression):
    """The names of metrics in an expression: names that nobody calls, without labels, ranges and words of PromQL."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\{[^}]*\}", "{}", bare)
    bare = re.sub(r"\[[^]]*\]", "", bare)
    return {
        re.sub(r"_(bucket|sum|count)$", "", name) if name.startswith("cairn_") and ":" not in name else name
        for name in re.findall(r"[a-zA-Z_][a-zA-Z0-9_:]*(?!\w|\s*\()", bare)
        if name not in {"and", "or", "unless", "by"} and not re.fullmatch(r"[a-z]{1,2}", name) or name == "up"
    }


def exported():
    """The names of metrics in the code: written where they are counted, or as a constant that is named there."""
    texts = list(sources())
    constants = set()
    for source in texts:
        constants |= set(re.findall(r"(?:counter|gauge|histogram)!\(\s*([A-Z_]+)\b", source))
    found = set()
    for source in texts:
        found |= set(re.findall(r'(?:counter|gauge|histogram)!\(\s*"(cairn_[a-z0-9_]+)"', source))
        written = re.findall(r'const ([A-Z_]+): &str =\s*"(cairn_[a-z0-9_]+)"', source)
        found |= {name for constant, name in written if constant in constants}
    return found


def documented():
    """The names in the table of metrics."""
    document = (ROOT / "docs/OPERATIONS.md").read_text()
    table = document[document.index("| Metric | Labels |") :].split("\n\n")[0]
    return {name for line in table.splitlines() for name in re.findall(r"`(cairn_\w+)`", line.split(" | ")[0])}


class Metrics(unittest.TestCase):
    def test_dashboards_and_alerts_ask_for_what_the_code_exports(self):
        exported = set()
        for source in sources():
            exported |= set(re.findall(r'"(cairn_[a-z0-9_]+)"', source))
        known = exported | FOREIGN | records()
        for expression in expressions():
            self.assertFalse(asked(expression) - known, expression)

    def test_operators_can_read_of_each(self):
        document = (ROOT / "docs/OPERATIONS.md").read_text()
        for expression in expressions():
            for name in asked(expression):
                if name.startswith("cairn_"):
                    self.assertIn(name, document)

    def test_all_are_documented_and_all_of_these_are_looked_at(self):
        self.assertGreater(len(exported()), 40)
        self.assertEqual(exported() - documented(), set(), "not in docs/OPERATIONS.md")
        looked_at = {name for expression in expressions() for name in asked(expression)}
        self.assertEqual(documented() - looked_at, set(), "on no dashboard and in no alert")

    def test_dashboards_can_be_told_apart(self):
        boards = [json.loads(path.read_text()) for path in DASHBOARDS]
        self.assertEqual(len({board["uid"] for board in boards}), 3)
        for board in boards:
            names = [variable["name"] for variable in board["templating"]["list"]]
            self.assertEqual(names, ["datasource", "namespace", "release", "component"])


class Alerts(unittest.TestCase):
    def test_each_has_a_runbook(self):
        document = (ROOT / "docs/OPERATIONS.md").read_text()
        self.assertGreaterEqual(len(alerts()), 8)
        for rule in alerts():
            name = rule["alert"]
            self.assertIn(f"### {name}\n", document)
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/OPERATIONS.md#{name.lower()}")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
        section = document[document.index("## Runbooks") :].split("\n## ")[0]
        written = re.findall(r"^### (Cairn\w+)$", section, re.MULTILINE)
        self.assertEqual(sorted(written), sorted(rule["alert"] for rule in alerts()))
        for runbook in section.split("\n### ")[1:]:
            parts = re.findall(r"\*\*(\w+(?:\s\w+)?)\*\*:", runbook)
            self.assertEqual([" ".join(part.split()) for part in parts], ["Means", "Look at", "Do", "Prevent"], runbook)

    def test_each_is_tried(self):
        tried = set()
        for name in ("rules_test.yaml", "budgets_test.yaml"):
            for test in yaml.safe_load((ROOT / "tests/chart" / name).read_text())["tests"]:
                tried |= {case["alertname"] for case in test["alert_rule_test"] if case["exp_alerts"]}
        self.assertEqual(tried, {rule["alert"] for rule in alerts()})

    def test_the_chart_ships_them_with_its_runbooks(self):
        found = objects(values=CHART / "ci/everything-values.yaml")
        shipped = next(item for item in found if item["kind"] == "PrometheusRule")["spec"]["groups"]
        urls = [rule["annotations"]["runbook_url"] for group in shipped for rule in group["rules"] if "alert" in rule]
        self.assertEqual(len(urls), len(alerts()))
        self.assertTrue(all(url.startswith("https://git.example.com/cairn/docs/OPERATIONS.md#cairn") for url in urls))


def options():
    """The variables that the binary reads."""
    return {name for source in sources() for name in re.findall(r'"((?:CAIRN|MCP)_[A-Z_]+)"', source)}


class Binary(unittest.TestCase):
    def test_containers_without_kubernetes_are_told_options_that_exist(self):
        services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
        told = {name: set(one.get("environment", {})) for name, one in services.items()}
        self.assertLessEqual(set(SERVICES), set(told))
        for name in SERVICES:
            self.assertEqual(told[name] - options() - OTHER_VARIABLES, set(), name)
            self.assertIn("CAIRN_MESH_SECRET", told[name])
        for service in (ROOT / "deploy/dist/cairn.env", ROOT / "deploy/dist/cairn.service"):
            self.assertEqual(set(re.findall(r"\bCAIRN_[A-Z_]+", service.read_text())) - options() - OTHER_VARIABLES, set())

    def test_the_chart_sets_options_that_exist(self):
        known = options() | OTHER_VARIABLES
        for values in value_sets():
            for template in pods(objects(values=values)).values():
                for container in containers(template):
                    told = {name.removesuffix("_FILE") for name in environment(container)}
                    self.assertFalse(told - known, values.name)

    def test_ports_are_those_of_the_binary(self):
        ports = dict(re.findall(r"Self::(\w+) => (87\d\d)", (ROOT / "src/cli/mesh.rs").read_text()))
        table = yaml.safe_load(
            re.sub(
                r"\{\{.*?\}\}",
                "",
                (CHART / "templates/_topology.tpl").read_text().split("{{- end }}")[0],
                flags=re.DOTALL,
            )
        )
        self.assertEqual(
            {name: str(table[name]["port"]) for name in SERVICES}, {name.lower(): port for name, port in ports.items()}
        )

    def test_versions_agree(self):
        version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)
        self.assertEqual(yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"], version)
        self.assertIn(f"## [{version}]", (ROOT / "CHANGELOG.md").read_text())


class Package(unittest.TestCase):
    def test_it_is_small_and_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            status, _, error = helm("package", str(CHART), "--destination", folder)
            self.assertEqual(status, 0, error)
            package = next(pathlib.Path(folder).glob("*.tgz"))
            self.assertLess(package.stat().st_size, 300_000)
            status, shipped, error = helm(
                "template", "release", str(package), "--values", str(CHART / "ci/everything-values.yaml")
            )
            self.assertEqual(status, 0, error)
            for part in ("kind: PrometheusRule", "cairn-overview", "helm.sh/hook: test"):
                self.assertIn(part, shipped)

    def test_values_are_told_of(self):
        self.assertEqual((CHART / "README.md").read_text(), _readme())


def _readme():
    import readme

    return readme.text()


if __name__ == "__main__":
    unittest.main()
