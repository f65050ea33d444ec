"""Lets schemathesis call a Cairn as callers of several roles and scopes: rest_flow.py BOOTSTRAP SCHEMATHESIS SECONDS.

Between the operations it follows links that it infers from the schemas: what one answer holds, another request uses. Standard
library only, beside schemathesis itself.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
PASSWORD = "correct horse battery"
CHECKS = "no_fault_of_ours,nothing_hidden,response_schema_conformance,content_type_conformance,status_code_conformance"
EVERYTHING = ("read", "write", "delete")
# What ends the caller's own session or account, waits for people's mail, or never ends.
LEFT_OUT = r"^/api/(session|account|invitations)|/events$"
# A file is answered raw as it was written: whether JSON of somebody is JSON is not Cairn's to say.
CONFIGURATION = """
[[operations]]
include-path = "/api/v1/files/{id}/raw"
checks.response_schema_conformance.enabled = false
"""


class Caller:
    """Somebody with a token or a session."""

    def __init__(self, base, header):
        self.base, self.header = base, header

    def call(self, method, path, body=None):
        """Answers the JSON of a good answer, and its headers."""
        data = None if body is None else json.dumps(body).encode()
        headers = dict([self.header] if self.header else [])
        headers |= {"content-type": "application/json"} if data is not None else {}
        request = urllib.request.Request(self.base + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read() or b"null"), answer.headers
        except urllib.error.HTTPError as answer:
            sys.exit(f"{method} {path} answers {answer.code}: {answer.read().decode()}")

    def post(self, path, **body):
        return self.call("POST", path, body)[0]


def session(base, headers):
    return Caller(base, ("cookie", headers["set-cookie"].split(";")[0]))


def invite(owner, workspace, role):
    """Somebody of that role, with a session."""
    made = owner.post(f"/api/workspaces/{workspace}/members", email=f"{role}@example.com", role=role)
    secret = made["invitation"]["link"].split("#")[1]
    body = {"secret": secret, "name": role, "password": PASSWORD}
    return session(owner.base, Caller(owner.base, None).call("POST", "/api/invitations/accept", body)[1])


def token(person, workspace, permissions, folder):
    scope = {"type": "folders", "folderIds": [folder]} if folder else {"type": "all"}
    path = f"/api/workspaces/{workspace}/tokens"
    made = person.post(path, name="Requests by schema", permissions=list(permissions), scope=scope)
    return Caller(person.base, ("authorization", f"Bearer {made['token']}"))


def fill(program, name, word):
    """A folder with one of each; answers its id, and all ids."""
    folder = program.post("/api/v1/folders", name=name)["id"]
    inner = program.post("/api/v1/folders", name=f"{name} {word}", parentId=folder)["id"]
    file = program.post("/api/v1/files", name="a.md", content=f"# {word}\n\nNotes of {word}.\n", fileType="markdown", folderId=inner)["id"]
    database = program.post("/api/v1/databases", name=f"Table {word}", folderId=folder)["id"]
    record = program.post(f"/api/v1/databases/{database}/records", values={})["id"]
    return folder, [folder, inner, file, database, record]


def changes(program):
    """Where the list of changes stands."""
    answer, _ = program.call("GET", "/api/v1/changes")
    return answer


def settled(program):
    """The same, once what was started before (a sync, a text to read) is done with writing."""
    for _ in range(60):
        before = changes(program)
        time.sleep(1)
        if changes(program) == before:
            return before
    sys.exit("failed: the list of changes does not come to rest")


def run(schemathesis, caller, document, title, seconds, hidden, mode):
    print(f"-- {title}, {seconds} s", flush=True)
    arguments = [schemathesis, "--config-file", "schemathesis.toml", "run", caller.base + document, "--phases", "stateful"]
    arguments += ["--max-time", str(seconds), "--checks", CHECKS, "--mode", mode, "--exclude-path-regex", LEFT_OUT]
    arguments += ["--header", ": ".join(caller.header), "--warnings", "off", "--no-color", "--continue-on-failure"]
    arguments += ["--generation-database", "none", "--request-timeout", "40", "--max-failures", "20"]
    arguments += ["--seed", os.environ.get("CAIRN_REST_SEED", "20")]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": os.path.join(HERE, "rest_checks.py"), "CAIRN_HIDDEN": ",".join(hidden)}
    done = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed: {title}")
    told = [line.strip() for line in done.stdout.splitlines() if "generated" in line or "covered" in line]
    print("\n".join(told), flush=True)


def main(bootstrap, schemathesis, seconds):
    with open(bootstrap, encoding="utf-8") as file:
        account = json.load(file)
    base, workspace = account["baseUrl"], account["workspaceId"]
    with open("schemathesis.toml", "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    signed_in = {"email": account["email"], "password": account["password"]}
    owner = session(base, Caller(base, None).call("POST", "/api/session", signed_in)[1])
    everything = token(owner, workspace, EVERYTHING, None)
    inside, _ = fill(everything, "Inside", "periwinkle")
    _, hidden = fill(everything, "Outside", "heliotrope")
    hidden.append("heliotrope")
    editor, viewer = invite(owner, workspace, "editor"), invite(owner, workspace, "viewer")
    programs, console = "/api/docs/openapi.json", "/api/docs/console.json"
    part = max(seconds // 5, 3)

    # Whoever sees a part only comes first: the others move and delete what is there.
    scoped = token(editor, workspace, EVERYTHING, inside)
    run(schemathesis, scoped, programs, "an editor's token of one folder", part, hidden, "all")
    before = settled(everything)
    reader = token(owner, workspace, ["read"], inside)
    run(schemathesis, reader, programs, "an owner's token that reads one folder", part, hidden, "all")
    looker = token(viewer, workspace, ["read"], None)
    run(schemathesis, looker, programs, "a viewer's token", part, [], "positive")
    run(schemathesis, viewer, console, "a viewer in the console", part, [], "positive")
    if changes(everything) != before:
        sys.exit("failed: somebody who may only read has changed something")
    run(schemathesis, everything, programs, "an owner's token", part, [], "all")
    print("ok: requests by schema")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
