// The server that run.sh started, and its API for what a test needs to be there first.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";

const [, , bootstrapFile, npmFolder] = process.argv;

/** What `cairn up` wrote when it first started: baseUrl, email, password, workspaceId, token. */
export const bootstrap = JSON.parse(readFileSync(bootstrapFile, "utf8"));
/** The address of the server, without a slash at the end. */
export const base = bootstrap.baseUrl;
/** The folder that sources of the provider `folder` may read. */
export const sourceRoot = `${dirname(dirname(bootstrapFile))}/sources`;
/** The folder that holds node_modules. */
export const npm = npmFolder;

const run = Date.now().toString(36);
let counter = 0;
/** A name that no other test has, of this run or another on the same server. */
export const unique = word => `${word}-${run}-${++counter}`;

/** Asks until the answer is not empty, and fails after half a minute. */
export async function eventually(what, ask) {
  for (let tries = 0; tries < 120; tries += 1) {
    const found = await ask();
    if (found) return found;
    await new Promise(done => setTimeout(done, 250));
  }
  assert.fail(`${what} did not come about`);
}

/** One person's calls of the API: a session of an account, kept as its cookie. */
export class Person {
  constructor(email, password) {
    Object.assign(this, { email, password, cookie: "" });
  }

  async signIn() {
    const answer = await this.send("POST", "/api/session", { email: this.email, password: this.password });
    assert.ok(answer.ok, `${this.email} does not get in: ${answer.status}`);
    return this;
  }

  /** The answer as it is; its cookie is kept. */
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

  /** The cookies of a browser that is this person's. */
  cookies() {
    const [name, value] = this.cookie.split(/=(.*)/s);
    return [{ name, value, url: base, httpOnly: true, sameSite: "Lax" }];
  }
}

const owner = new Person(bootstrap.email, bootstrap.password).signIn();

/** Somebody new who has taken an invitation as that role. */
async function join(inviter, workspaceId, role, name) {
  const person = new Person(`${unique("person")}@example.com`, "correct horse battery");
  const { invitation } = await inviter.call("POST", `/api/workspaces/${workspaceId}/members`, { email: person.email, role });
  await person.call("POST", "/api/invitations/accept", { secret: invitation.link.split("#")[1], name, password: person.password });
  return person;
}

// Nobody may own more than 50 workspaces: the owner of the server has the first of each part of the walk, others have the next.
const MOST_OF_ONE = 8;
const founders = [owner];
let founded = 0;
async function founder() {
  const at = Math.floor(founded / MOST_OF_ONE);
  founded += 1;
  founders[at] ??= owner.then(first => join(first, bootstrap.workspaceId, "viewer", `Owner ${at + 1}`));
  return founders[at];
}

/** A workspace of its own for each who asks, with an owner, and a token that writes. */
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

  /** Invites, and answers the link. */
  async invite(email, role) {
    return (await this.owner.call("POST", `/api/workspaces/${this.id}/members`, { email, role })).invitation.link;
  }

  /** Somebody new who has joined with that role. */
  async member(role, name = unique("Somebody")) {
    return join(this.owner, this.id, role, name);
  }

  /** Waits until searches find the phrase. */
  async searchable(query) {
    await eventually(`"${query}" in the index`, async () => {
      const answer = await this.call("POST", "/api/v1/search_context", { query, strategy: "keyword" });
      return answer.results.length > 0;
    });
  }
}
