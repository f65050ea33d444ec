"""What the tests of the chart share: renderings, and looks into them."""

import functools
import json
import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/cairn"
EXAMPLES = ROOT / "deploy/helm/examples"
SERVICES = ["gateway", "auth", "content", "ingest", "retrieval", "sync"]
COMPONENT = "app.kubernetes.io/component"
# Groups that Kubernetes itself does not have.
FOREIGN = ("gateway.networking.k8s.io", "monitoring.coreos.com", "cert-manager.io")
# A mesh with every store.
MESH = (
    "mode=mesh",
    "database.existingSecret=pg",
    "redis.existingSecret=redis",
    "qdrant.url=http://qdrant:6334",
    "qdrant.existingSecret=qdrant",
    "assets.url=s3://bucket/prefix",
    "assets.existingSecret=s3",
)


@functools.cache
def helm(*arguments):
    """The exit status, the output and what went wrong."""
    done = subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@functools.cache
def text(*settings, values=None, release="release", kube=None, show=None):
    """The manifests as helm prints them. `settings` are those of --set."""
    arguments = ["template", release, str(CHART), "--namespace", "here"]
    arguments += [word for setting in settings for word in ("--set", setting)]
    arguments += ["--values", str(values)] if values else []
    arguments += ["--kube-version", kube] if kube else []
    arguments += ["--show-only", show] if show else []
    status, out, error = helm(*arguments)
    if status:
        raise AssertionError(error)
    return out


# The C loader reads a dozen meshes in the time in which the other one reads one.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def _parsed(rendered):
    return [document for document in yaml.load_all(rendered, LOADER) if document]


def objects(*settings, **more):
    return _parsed(text(*settings, **more))


def refusal(*settings):
    """Why helm does not render this; nothing when it does."""
    arguments = [word for setting in settings for word in ("--set", setting)]
    status, _, error = helm("template", "release", str(CHART), *arguments)
    return error if status else ""


def kind(wanted, found):
    return {item["metadata"]["name"]: item for item in found if item["kind"] == wanted}


def pods(found):
    """The templates of all pods, by kind and name."""
    kinds = ("Deployment", "StatefulSet", "Job", "DaemonSet", "CronJob")
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["spec"].get("jobTemplate", item)["spec"]["template"]
        for item in found
        if item["kind"] in kinds
    }


def containers(template):
    return template["spec"].get("initContainers", []) + template["spec"]["containers"]


def service(name, found):
    """The main container of a component."""
    for template in pods(found).values():
        if template["metadata"]["labels"][COMPONENT] == name:
            return template["spec"]["containers"][0]
    raise AssertionError(f"no {name}")


def environment(container):
    return {variable["name"]: variable for variable in container["env"]}


def value_sets():
    return sorted([*CHART.glob("ci/*-values.yaml"), *EXAMPLES.glob("*.yaml")])


def sources():
    """The texts of the code that runs, without tests."""
    folders = [
        "src",
        "chassis/src",
        "gateway/src",
        "svc-auth",
        "svc-content",
        "svc-ingest",
        "svc-retrieval",
        "svc-sync",
    ]
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            if not re.search(r"/(tests|testing|benches|fuzz|target)(/|\.rs)", str(path)):
                yield path.read_text()


def main():
    """Prints the objects of foreign groups that any values render, for custom_resources.mjs."""
    rendered = [item for values in value_sets() for item in objects(values=values)]
    print(json.dumps([item for item in rendered if item["apiVersion"].startswith(FOREIGN)]))


if __name__ == "__main__":
    main()
