// The server that run.sh started, and its API for the setup of tests.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";

const [, , bootstrapFile, npmFolder] = process.argv;

/** What `cairn up` wrote at its first start: baseUrl, email, password, workspaceId, token. */
export const bootstrap = JSON.parse(readFileSync(bootstrapFile, "utf8"));
/** The base URL of the server, without a trailing slash. */
export const base = bootstrap.baseUrl;
/** The root that sources of the provider `folder` may read. */
export const sourceRoot = `${dirname(dirname(bootstrapFile))}/sources`;
/** The folder that contains node_modules. */
export const npm = npmFolder;

const run = Date.now().toString(36);
let counter = 0;
/** A unique name, also across runs on the same server. */
export const unique = word => `${word}-${run}-${++counter}`;

/** Polls until the result is truthy, and fails after half a minute. */
export async function eventually(what, ask) {
  for (let tries = 0; tries < 120; tries += 1) {
    const found = await ask();
    if (found) return found;
    await new Promise(done => setTimeout(done, 250));
  }
  assert.fail(`${what} did not come about`);
}

/** A person's API calls: the session of an account, kept as its cookie. */
export class Person {
  constructor(email, password) {
    Object.assign(this, { email, password, cookie: "" });
  }

  async signIn() {
    const answer = await this.send("POST", "/api/session", { email: this.email, password: this.password });
    assert.ok(answer.ok, `${this.email} does not get in: ${answer.status}`);
    return this;
  }

  /** The raw response; its session cookie is kept. */
  async send(method, path, body) {
    const headers = { origin: base, ...(this.cookie && { cookie: this.cookie }), ...(body && { "content-type": "application/json" }) };
    const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body), redirect: "manual" });
    const cookie = answer.headers.getSetCookie().find(one => /^(__Host-)?cairn_session=/.test(one));
    if (cookie) this.cookie = cookie.split(";")[0];
    return answer;
  }

  async call(method, path, body) {
    const answer = await this.send(method, path, body);
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** The cookies of a browser with this person's session. */
  cookies() {
    const [name, value] = this.cookie.split(/=(.*)/s);
    return [{ name, value, url: base, httpOnly: true, sameSite: "Lax" }];
  }
}

const owner = new Person(bootstrap.email, bootstrap.password).signIn();

/** A new person who has accepted an invitation with that role. */
async function join(inviter, workspaceId, role, name) {
  const person = new Person(`${unique("person")}@example.com`, "correct horse battery");
  const { invitation } = await inviter.call("POST", `/api/workspaces/${workspaceId}/members`, { email: person.email, role });
  await person.call("POST", "/api/invitations/accept", { secret: invitation.link.split("#")[1], name, password: person.password });
  return person;
}

// A person may own at most 50 workspaces: the server's owner creates the first ones of each part of the run, further people the
// rest.
const MAX_WORKSPACES_PER_OWNER = 8;
const founders = [owner];
let founded = 0;
async function founder() {
  const at = Math.floor(founded / MAX_WORKSPACES_PER_OWNER);
  founded += 1;
  founders[at] ??= owner.then(first => join(first, bootstrap.workspaceId, "viewer", `Owner ${at + 1}`));
  return founders[at];
}

/** A workspace for a single test, with an owner, and a token that may write. */
export class Workspace {
  static async open(name = unique("Workspace")) {
    const of = await founder();
    const made = await of.call("POST", "/api/workspaces", { name });
    const workspace = new Workspace();
    Object.assign(workspace, { owner: of, id: made.id, name, at: `/w/${made.id}` });
    const fields = { name: "Seed", permissions: ["read", "write", "delete"] };
    workspace.token = (await of.call("POST", `/api/workspaces/${made.id}/tokens`, fields)).token;
    return workspace;
  }

  async call(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, ...(body && { "content-type": "application/json" }) };
    const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  folder(name, parentId) {
    return this.call("POST", "/api/v1/folders", { name, parentId });
  }

  file(name, content, { folderId, fileType = "markdown", tags } = {}) {
    return this.call("POST", "/api/v1/files", { name, content, fileType, folderId, tags });
  }

  read(id) {
    return this.call("GET", `/api/v1/files/${id}`);
  }

  write(id, content) {
    return this.call("PATCH", `/api/v1/files/${id}`, { content });
  }

  trash(kind, id) {
    return this.call("DELETE", `/api/v1/${kind}s/${id}`);
  }

  /** Invites, and returns the link. */
  async invite(email, role) {
    return (await this.owner.call("POST", `/api/workspaces/${this.id}/members`, { email, role })).invitation.link;
  }

  /** A new person who has joined with that role. */
  async member(role, name = unique("Somebody")) {
    return join(this.owner, this.id, role, name);
  }

  /** API calls with a new token that has every permission. */
  async agent(name) {
    const fields = { name, permissions: ["read", "write", "delete"] };
    const { token } = await this.owner.call("POST", `/api/workspaces/${this.id}/tokens`, fields);
    return async (method, path, body) => {
      const headers = { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) };
      const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
      assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    };
  }

  /** Waits until searches find the phrase. */
  async searchable(query) {
    await eventually(`"${query}" in the index`, async () => {
      const answer = await this.call("POST", "/api/v1/search_context", { query, strategy: "keyword" });
      return answer.results.length > 0;
    });
  }
}
