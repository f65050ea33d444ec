#!/usr/bin/env python3
"""Counts the instructions that a request takes, and compares them with figures.json.

    tests/instructions/run.py target/debug/cairn --write    # before a change
    tests/instructions/run.py target/debug/cairn            # after it: fails beyond 5 %

Time depends on the load of the machine; the instructions of a fixed list of requests do not. The server runs under callgrind
(valgrind) with one worker thread and answers the same requests in the same order to one caller. Counted are the request's task, from
its head to its response and through all services (REQUEST), and for a search the index's work on other threads (INDEX). What happens as
often as time allows is not counted: the exchange of the token, once a second, the index's maintenance, and its batches, which take in
whatever was written meanwhile. SQLite's threads are not counted, either. The figures are those of the build that tests use, which
is not optimised: they show what a change adds or saves, not what a request costs.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

FIGURES = pathlib.Path(__file__).with_name("figures.json")
ROOM = 0.05
START_LIMIT_S = 300
# What counts for a request, and what is called within it but not counted.
REQUEST = ("cairn_gateway::edge::serve::{{closure}}", "cairn_gateway::auth::token_cache::TokenCache::load::{{closure}}")
# The same for the index.
INDEX = ("cairn_index::embedded::engine::EmbeddedEngine::run_blocking::{{closure}}::{{closure}}", "cairn_index::embedded::Index::maintain")
LINE = re.compile(r"^\s*([\d,]+) \([^)]*\)\s+[^:]*:(.*?)(?: \[[^\]]*\])?$", re.MULTILINE)
WARM_UP = 3
DOCUMENTS = 24
RECORDS = 40
WORDS = "gate harbour ledger lantern meadow mortar needle orchard pebble quarry ribbon saddle timber vessel willow".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--write", action="store_true", help="write figures.json instead of comparing with it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.binary, pathlib.Path(folder))
        try:
            counted = measure(server)
        finally:
            server.stop()
    if options.write:
        FIGURES.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
        print("\n".join(f"{name}: {count:,}" for name, count in counted.items()))
        return 0
    if not FIGURES.exists():
        sys.exit(f"there is nothing to compare with: --write makes {FIGURES}")
    return judge(counted, json.loads(FIGURES.read_text(encoding="utf-8")))


def judge(counted, committed):
    worse = 0
    for name, count in counted.items():
        before = committed.get(name)
        if before is None:
            print(f"new     {name}: {count:,}")
            worse += 1
            continue
        ratio = count / before
        word = "WORSE" if ratio > 1 + ROOM else "better" if ratio < 1 - ROOM else "same"
        worse += word == "WORSE"
        print(f"{word:<6}  {ratio:5.3f}  {name}: {before:,} -> {count:,} instructions a request")
    if worse:
        print(f"more than {ROOM:.0%} above tests/instructions/figures.json: find what takes them, or run it with --write", file=sys.stderr)
    return 1 if worse else 0


def measure(server):
    """Instructions of a request on each path."""
    server.warm()
    files = [server.made("/api/v1/files", document(number)) for number in range(DOCUMENTS)]
    database = server.made("/api/v1/databases", {"name": "Tasks"})
    path = f"/api/v1/databases/{database['id']}"
    for field in ({"name": "Points", "type": "number"}, {"name": "Due", "type": "date"}, {"name": "Note", "type": "text"}):
        server.made(f"{path}/fields", field)
    ids = {field["name"]: field["id"] for field in server.call("GET", path)["properties"]}
    for number in range(RECORDS):
        server.made(f"{path}/records", record(ids, number))
    # Nothing is left to be indexed when counting begins.
    server.call("POST", "/api/v1/search_context", {"query": "gate"}, seen=True)

    page = f"{path}/records?limit=50&sortFieldId={ids['Points']}&filterFieldId={ids['Note']}&filterOperator=contains&filterValue=e"
    search = lambda number, strategy: {"query": f"{WORDS[number % 15]} {WORDS[number * 7 % 15]}", "limit": 10, "strategy": strategy}
    paths = {
        "point read": (10, lambda number: server.call("GET", f"/api/v1/files/{files[number % DOCUMENTS]['id']}")),
        "record page": (6, lambda number: server.call("GET", page)),
        "keyword search": (6, lambda number: server.call("POST", "/api/v1/search_context", search(number, "keyword"))),
        "hybrid search": (6, lambda number: server.call("POST", "/api/v1/search_context", search(number, "hybrid"))),
        "record insert": (6, lambda number: server.made(f"{path}/records", record(ids, RECORDS + number))),
    }
    # All functions that are looked for have run by now.
    server.count()
    counted = {}
    for name, (times, request) in paths.items():
        for number in range(WARM_UP):
            request(number)
        server.zero()
        for number in range(WARM_UP, WARM_UP + times):
            request(number)
        counted[name] = server.count(index=name.endswith("search")) // times
        print(f"-- {name}: {counted[name]:,}", flush=True)
    missing = {*REQUEST, *INDEX} - server.seen
    if missing:
        sys.exit(f"never called: {', '.join(sorted(missing))}; renamed? (REQUEST and INDEX in {__file__})")
    return counted


def document(number):
    lines = [f"# Document {number}\n"]
    for section in range(6):
        words = " ".join(WORDS[(number * 3 + section * 5 + word * (1 + number % 4)) % 15] for word in range(40))
        lines.append(f"\n## Part {section}\n\n{words}.\n")
    return {"name": f"document-{number}.md", "fileType": "markdown", "content": "".join(lines)}


def record(ids, number):
    note = " ".join(WORDS[(number + word) % 15] for word in range(8))
    values = {"Name": f"Task {number}", "Points": number % 17, "Due": f"2026-11-{1 + number % 28:02}", "Note": note}
    return {"values": {ids[name]: value for name, value in values.items()}}


class Server:
    """`cairn up` under callgrind."""

    def __init__(self, binary, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}
        # One worker, and one arena.
        environment.update(TOKIO_WORKER_THREADS="1", MALLOC_ARENA_MAX="1", CAIRN_PLANS='{"selfhosted": {"minute": null, "hour": null, "day": null}}')
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", f"--vgdb-prefix={folder}/vgdb",
             "--log-file=" + str(folder / "valgrind.log"), binary, "up", "--data", str(folder / "data"), "--quiet",
             "--listen", f"127.0.0.1:{self.port}", "--admin-listen", "127.0.0.1:0"],
            env=environment, stdout=subprocess.DEVNULL)
        self.dumps = 0
        self.seen = set()
        self.change = None
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        self.wait_until_ready()
        self.token = json.loads((folder / "data" / "bootstrap.json").read_text(encoding="utf-8"))["token"]

    def wait_until_ready(self):
        began = time.monotonic()
        while time.monotonic() - began < START_LIMIT_S:
            if self.process.poll() is not None:
                sys.exit("the server ended: " + (self.folder / "valgrind.log").read_text(encoding="utf-8")[-2000:])
            try:
                self.connection.request("GET", "/readyz")
                answer = self.connection.getresponse()
                answer.read()
                if answer.status == 200:
                    return
            except OSError:
                self.connection.close()
            time.sleep(0.2)
        sys.exit(f"the server was not ready after {START_LIMIT_S} s")

    def call(self, method, path, body=None, seen=False, may_fail=False):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if seen and self.change:
            headers["X-Cairn-Change"] = self.change
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if may_fail and answer.status in (503, 504):
            return None
        if answer.status >= 300:
            sys.exit(f"{method} {path} answered {answer.status}: {text[:500]}")
        self.change = answer.headers.get("x-cairn-change") or self.change
        return json.loads(text)

    def warm(self):
        """The first requests translate most of the program, which a busy machine may need more than a request's time for."""
        for method, path, body in [("GET", "/api/v1/databases", None), ("POST", "/api/v1/search_context", {"query": "gate"})] * 5:
            self.call(method, path, body, may_fail=True)

    def made(self, path, body):
        return self.call("POST", path, body)

    def control(self, command):
        subprocess.run(["vgdb", f"--vgdb-prefix={self.folder}/vgdb", f"--pid={self.process.pid}", *command],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def zero(self):
        self.control(["zero"])

    def count(self, index=False):
        """Instructions since zero of requests, and of the index if told."""
        self.control(["dump"])
        self.dumps += 1
        dump = self.folder / f"counts.{self.dumps}"
        report = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", dump], check=True,
                              capture_output=True, text=True, timeout=300).stdout
        by_function = {}
        for count, name in LINE.findall(report):
            by_function.setdefault(name, int(count.replace(",", "")))
        self.seen.update(by_function)
        net = lambda whole, excluded: by_function.get(whole, 0) - by_function.get(excluded, 0)
        return net(*REQUEST) + (net(*INDEX) if index else 0)

    def stop(self):
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    sys.exit(main())
