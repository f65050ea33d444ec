"""Plays three nodes in two zones on a control plane without kubelets: nodes.py SERVER CA TOKEN.

Pods that are scheduled get ready half a second later, unless their image is called `broken`; those of Jobs succeed; those that
are deleted take a second to end. Volumes bind by a class without a provisioner and a few of hostPath."""

import datetime
import json
import ssl
import sys
import time
import urllib.error
import urllib.request

SERVER, CA, TOKEN = sys.argv[1:]
CONTEXT = ssl.create_default_context(cafile=CA)
HEARTBEAT_SECONDS = 10
READY_SECONDS = 0.5
END_SECONDS = 1
VOLUMES = 24


def ask(method, path, body=None, kind="application/json"):
    request = urllib.request.Request(
        SERVER + path, method=method, data=json.dumps(body).encode() if body is not None else None
    )
    request.add_header("Authorization", f"Bearer {TOKEN}")
    request.add_header("Content-Type", kind)
    try:
        with urllib.request.urlopen(request, context=CONTEXT, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        # What is there already, or has gone meanwhile, is no concern of a node.
        if error.code in (404, 409):
            return None
        raise RuntimeError(f"{method} {path}: {error.read().decode()}") from error


def merge(path, body):
    return ask("PATCH", path, body, "application/merge-patch+json")


def now():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_nodes():
    for number, zone in enumerate(("a", "b", "a")):
        labels = {
            "kubernetes.io/hostname": f"node-{number}",
            "topology.kubernetes.io/zone": zone,
            "kubernetes.io/arch": "amd64",
        }
        ask(
            "POST",
            "/api/v1/nodes",
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}", "labels": labels}},
        )
    beat()
    # A new node is tainted until its controller has seen that it is ready.
    for number in range(3):
        merge(f"/api/v1/nodes/node-{number}", {"spec": {"taints": None}})


def beat():
    room = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Played",
        "message": "",
        "lastHeartbeatTime": now(),
        "lastTransitionTime": now(),
    }
    for number in range(3):
        merge(
            f"/api/v1/nodes/node-{number}/status",
            {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}},
        )


def make_volumes():
    group = "/apis/storage.k8s.io/v1/storageclasses"
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    ask("POST", group, {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner",
        "metadata": {"name": "played", "annotations": default},
    })  # fmt: skip
    for number in range(VOLUMES):
        ask("POST", "/api/v1/persistentvolumes", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{number}"},
            "spec": {"capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"],
                     "storageClassName": "played", "persistentVolumeReclaimPolicy": "Retain",
                     "hostPath": {"path": f"/tmp/played/{number}"}},
        })  # fmt: skip


def status_of(pod, number):
    containers = pod["spec"]["containers"]
    is_job = pod["spec"]["restartPolicy"] != "Always"
    is_broken = any("broken" in container["image"] for container in containers)
    is_ready = not is_job and not is_broken
    if is_job:
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
    elif is_broken:
        state = {"waiting": {"reason": "ImagePullBackOff", "message": "played"}}
    else:
        state = {"running": {"startedAt": now()}}
    phase = "Succeeded" if is_job else "Pending" if is_broken else "Running"
    condition = "True" if is_ready else "False"
    return {
        "phase": phase,
        "startTime": now(),
        "podIP": f"10.0.{number // 250}.{number % 250 + 1}",
        "podIPs": [{"ip": f"10.0.{number // 250}.{number % 250 + 1}"}],
        "conditions": [
            {"type": kind, "status": "True" if kind in ("PodScheduled", "Initialized") else condition, "lastTransitionTime": now()}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {"name": container["name"], "image": container["image"], "imageID": "", "ready": is_ready, "restartCount": 0,
             "started": is_ready, "state": state}
            for container in containers
        ],
    }  # fmt: skip


def play(seen, ending):
    for pod in ask("GET", "/api/v1/pods")["items"]:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "nodeName" not in pod["spec"]:
            continue
        if "deletionTimestamp" in metadata:
            if time.monotonic() - ending.setdefault(metadata["uid"], time.monotonic()) > END_SECONDS:
                ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})
            continue
        first, number = seen.setdefault(metadata["uid"], (time.monotonic(), len(seen)))
        if (
            pod["status"].get("phase") == "Pending"
            and "podIP" not in pod["status"]
            and time.monotonic() - first > READY_SECONDS
        ):
            merge(path + "/status", {"status": status_of(pod, number)})


def main():
    make_volumes()
    make_nodes()
    seen, ending, beaten = {}, {}, time.monotonic()
    while True:
        play(seen, ending)
        if time.monotonic() - beaten > HEARTBEAT_SECONDS:
            beat()
            beaten = time.monotonic()
        time.sleep(0.2)


if __name__ == "__main__":
    main()
