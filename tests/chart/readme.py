"""The chart's README, made of the comments in values.yaml: `python3 tests/chart/readme.py` writes it, a test compares."""

import json
import re

import yaml

from rendering import CHART

HEAD = """# The chart `cairn`

```sh
helm install cairn deploy/helm/cairn                        # one pod with a volume; no value is needed
helm install cairn deploy/helm/cairn --values deploy/helm/examples/mesh-external.yaml
```

[docs/KUBERNETES.md](../../../docs/KUBERNETES.md) is the guide: stores, secrets, TLS, upgrades. [examples](../examples) has
values for ten cases, each rendered by the checks. `tests/chart/readme.py` generates this table from `values.yaml`.

| Value | Default | |
|---|---|---|
"""


def rows(values, path, comments):
    for key, value in values.items():
        here = [*path, key]
        if isinstance(value, dict) and value and key not in ("requests", "limits", "behavior", "labels", "resources"):
            yield from rows(value, here, comments)
        else:
            name = ".".join(here)
            yield f"| `{name}` | `{json.dumps(value)}` | {comments.get(name, '')} |"


def comments_of(text):
    """What stands behind `# --` above a key, by the key's whole name."""
    found, path, comment = {}, [], []
    for line in text.splitlines():
        said = re.match(r"\s*# (-- )?(.*)", line)
        key = re.match(r"( *)([\w.]+):", line)
        if said:
            comment = [said[2]] if said[1] else comment and [*comment, said[2]]
        elif key:
            path = [*path[: len(key[1]) // 2], key[2]]
            if comment:
                found[".".join(path)] = " ".join(comment).replace("|", "\\|")
            comment = []
        else:
            comment = []
    return found


def text():
    source = (CHART / "values.yaml").read_text()
    return HEAD + "\n".join(rows(yaml.safe_load(source), [], comments_of(source))) + "\n"


if __name__ == "__main__":
    (CHART / "README.md").write_text(text())
