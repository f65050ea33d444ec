// Hostile text in every field that people and agents write: no script runs, no page breaks.
import assert from "node:assert/strict";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open, overflow } from "./support/browser.mjs";
import { base, unique, Workspace } from "./support/server.mjs";
import { ALL_TYPES, member, Table } from "./support/tables.mjs";

const NAMES = [
  "<img src=x onerror=hurt=1>",
  "\"><svg onload=hurt=1>",
  "' autofocus onfocus='hurt=1",
  "javascript:hurt=1",
  "{{7*7}}${7*7}<%= 7*7 %>",
  "\u202egnp.exe\u2066",
  "العربية نص طويل",
  "👩‍👩‍👧‍👦".repeat(8),
  "w".repeat(200),
  "&lt;b&gt; &amp;amp; %3Cscript%3E",
];

const TEXT = `<script>hurt=1</script><img src=x onerror=hurt=1>

[one](javascript:hurt=1) [two](JaVaScRiPt&#58;hurt=1) [three](data:text/html,<script>hurt=1</script>) <javascript:hurt=1>
[four]: vbscript:hurt=1
![five](https://example.com/pixel.png) ![six](data:image/svg+xml,<svg/onload=hurt=1>)

<style>main { display: none }</style><base href="https://example.com/"><iframe srcdoc="<script>hurt=1</script>"></iframe>

| a | b |
|---|---|
| ${"x".repeat(2000)} | <b onclick=hurt=1>b</b> |

# ${"long".repeat(200)}
# <a href="javascript:hurt=1">heading</a>

\`\`\`"><script>hurt=1</script>
</code></pre><script>hurt=1</script>
\`\`\`

[^x]: footnote <svg onload=hurt=1>
text[^x] \u202etxet sdrawkcab
${"> ".repeat(300)}deep

${Array.from({ length: 40 }, (_, at) => `${"  ".repeat(at)}- level ${at}`).join("\n")}
`;

/** Asserts that no script ran, and that the page is intact. */
async function assertHarmless(page) {
  assert.equal(await page.evaluate(() => globalThis.hurt), undefined, "something ran");
  assert.ok(await page.getByRole("main").isVisible());
  const bad = await page.evaluate(() => [...document.querySelectorAll("a[href], img[src], form[action]")]
    .map(one => one.href ?? one.src ?? one.action)
    .filter(url => /^(javascript|vbscript|data):/i.test(url)));
  assert.deepEqual(bad, []);
  await assertSound(page);
}

/** A database whose names, options, views and values are hostile. */
async function hostileTable(workspace, file) {
  const fields = NAMES.slice(1).map((name, at) => [[...name].slice(0, 90).join(""), ["text", "url", "select", "multi_select", "text"][at % 5], at % 5 === 2 || at % 5 === 3 ? { options: NAMES.map(one => ({ name: [...one].slice(0, 60).join("") })) } : undefined]);
  const table = await Table.make(workspace, NAMES[0], [...ALL_TYPES, ...fields], { description: NAMES[1] });
  const values = { Name: NAMES[0], Note: TEXT.slice(0, 3000), File: file.id };
  for (const [name, type] of fields) values[name] = { text: TEXT.slice(0, 500), url: "https://example.com/?<script>\"'", select: NAMES[0], multi_select: [NAMES[0], NAMES[1]] }[type];
  table.first = await table.add(values);
  await table.change(table.first, { Name: NAMES[1] });
  for (const name of NAMES) await table.add({ Name: name });
  table.odd = (await table.view(NAMES[0], { filters: [{ fieldId: table.fields.Name, operator: "contains", value: NAMES[0].slice(0, 4) }] })).id;
  return table;
}

test("hostile names and texts are shown as they are", async group => {
  const workspace = await Workspace.open(NAMES[0]);
  const parent = await workspace.folder(NAMES[1]);
  for (const name of NAMES) {
    await workspace.folder(`d ${name}`, parent.id);
    await workspace.file(`${name}.md`, TEXT, { folderId: parent.id, tags: [[...name].slice(0, 40).join("")] });
    await workspace.owner.call("POST", `/api/workspaces/${workspace.id}/tokens`, { name: [...name].slice(0, 60).join(""), permissions: ["read"] });
  }
  const root = await workspace.file(`${NAMES[9]}.md`, TEXT);
  await workspace.write(root.id, `${TEXT}\n${TEXT}`);
  const json = await workspace.file("odd.json", JSON.stringify({ [NAMES[0]]: NAMES[1], "</script>": "<!--" }), { fileType: "json" });
  const gone = await workspace.file(`${NAMES[3]}.md`, "x");
  await workspace.trash("file", gone.id);
  const shelf = await workspace.folder(NAMES[2]);
  await workspace.trash("folder", shelf.id);
  await workspace.member("viewer", NAMES[0]);
  await workspace.member("admin", "w".repeat(80));
  const table = await hostileTable(workspace, root);
  const memory = await workspace.call("POST", "/api/v1/memories", {
    name: NAMES[0], useWhen: TEXT.slice(0, 900), description: NAMES[5], isPublic: true,
    members: [member("file", root.id), member("folder", parent.id), member("database", table.id)],
  });
  await workspace.searchable("footnote");
  const { at } = workspace;
  const paths = {
    overview: [at], files: [`${at}/files`], folder: [`${at}/files?folder=${parent.id}`], tagged: [`${at}/files?tag=${encodeURIComponent(NAMES[0])}`],
    "name search": [`${at}/files?q=${encodeURIComponent(NAMES[0])}`],
    read: [`/file/${root.id}`], source: [`/file/${root.id}?view=source`], changes: [`/file/${root.id}?view=changes`], uses: [`/file/${root.id}?view=uses`],
    version: [`/file/${root.id}/versions/2`], edit: [`/file/${root.id}/edit`], json: [`/file/${json.id}`],
    "in trash": [`/file/${gone.id}`, 404], "folder in trash": [`${at}/files?folder=${shelf.id}`, 404],
    search: [`${at}/search?q=footnote`], question: [`${at}/search?q=${encodeURIComponent(TEXT.slice(0, 900))}`],
    script: [`${at}/search?view=script&script=${encodeURIComponent("ls -R /files; cat /files/*")}`],
    databases: [`${at}/databases`], grid: [table.at], view: [`${table.at}?view=${table.odd}`], record: [`${table.at}?record=${table.first}`],
    "versions of a record": [`${table.at}?record=${table.first}&show=versions`], fields: [`${table.at}/fields`],
    cell: [`${table.at}?cell=${table.first}:${Object.values(table.fields)[1]}`],
    filter: [`${table.at}?q=${encodeURIComponent(NAMES[0])}&filter=${encodeURIComponent(`${table.fields[NAMES[1]]}:contains:${NAMES[1]}`)}`],
    "no record": [`${table.at}?record=<script>&sort=%00&filter=a:b:c&page=-1&view=%ff`, 404],
    memories: [`${at}/memories`], memory: [`/memories/${memory.id}`], "members found": [`/memories/${memory.id}?q=${encodeURIComponent("<")}`],
    "memory to edit": [`/memories/${memory.id}/edit`], "public memory": [`/m/${memory.id}`], analytics: [`${at}/analytics?days=<script>`],
    trash: [`${at}/trash`], tokens: [`${at}/tokens`], "new token": [`${at}/tokens/new`], members: [`${at}/members`], settings: [`${at}/settings`],
    workspaces: ["/workspaces"], queries: [`${at}/files?folder=<script>&from=%00&q=%ff`, 404],
    "return address": [`/sign-in?return_to=${encodeURIComponent("//example.com/<script>")}`],
  };
  for (const [name, [path, status]] of Object.entries(paths)) {
    await group.test(`hostile: ${name}`, () =>
      browse({ as: workspace.owner }, async page => {
        await open(page, path, status);
        await assertHarmless(page);
      }));
  }
});

test("hostile text comes back from every form as it was typed", async () => {
  const workspace = await Workspace.open();
  const typed = `${NAMES[0]}"'&`;
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/files`);
    await page.getByRole("button", { name: "New file" }).click();
    const name = page.getByRole("textbox", { name: "Name", exact: true }).filter({ visible: true });
    await name.fill(`${typed}.md`);
    await inForm(name, "Create file").click();
    await page.waitForURL(/\/edit$/);
    await page.getByRole("heading", { level: 1, name: `${typed}.md` }).waitFor();
    await page.getByLabel("Text").fill(TEXT);
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("heading", { name: "Preview" }).waitFor();
    await assertHarmless(page);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    await assertHarmless(page);
    const id = page.url().match(/\/file\/([^/?#]+)/)[1];
    assert.equal((await workspace.read(id)).content, TEXT);
    await open(page, `${workspace.at}/tokens/new`);
    await page.getByLabel("Name").fill(typed);
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByRole("textbox", { name: "Token" }).waitFor();
    await assertHarmless(page);
    await open(page, `${workspace.at}/search`);
    await page.getByLabel("Question").fill(typed);
    await page.keyboard.press("Enter");
    await page.getByRole("status").or(page.getByRole("alert")).first().waitFor();
    assert.equal(await page.getByLabel("Question").inputValue(), typed);
    await assertHarmless(page);
    await open(page, "/workspaces");
    await page.getByLabel("Name").fill("x".repeat(500));
    await page.getByRole("button", { name: "Create workspace" }).click();
    await page.getByRole("link", { name: /Name/ }).first().waitFor();
    await assertHarmless(page);
  });
});

test("a line of five million letters is shown, in source and in the editor too", async () => {
  const workspace = await Workspace.open();
  const long = await workspace.file("long.txt", "x".repeat(5_000_000), { fileType: "text" });
  const short = await workspace.file("short.txt", "a\n".repeat(200_000), { fileType: "text" });
  for (const path of [`/file/${long.id}`, `/file/${long.id}?view=source`, `/file/${short.id}`, `/file/${short.id}/edit?line=100000`]) {
    await browse({ as: workspace.owner }, async page => {
      await open(page, path);
      // axe would report the same as on a short page; here it would take minutes.
      assert.ok(await page.getByRole("main").isVisible());
      assert.deepEqual(await overflow(page, NARROW), []);
    });
  }
});

test("an app of any name asks for leave, is listed, and its access is ended", async () => {
  const workspace = await Workspace.open();
  const name = `${NAMES[0]}${unique(" app ")}`;
  const callback = "http://127.0.0.1:9/callback";
  const registered = await fetch(`${base}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: name, redirect_uris: [callback], token_endpoint_auth_method: "none" }),
  });
  const { client_id } = await registered.json();
  assert.ok(client_id, `${registered.status}`);
  // The code verifier and challenge of RFC 7636, appendix B.
  const [verifier, challenge] = ["dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"];
  const query = new URLSearchParams({
    response_type: "code", client_id, redirect_uri: callback, state: "s", code_challenge: challenge, code_challenge_method: "S256", resource: `${base}/mcp`,
  });
  await browse({ elsewhere: callback }, async (page, context) => {
    await context.route(`${callback}*`, route => route.fulfill({ contentType: "text/html", body: "<title>The app</title>" }));
    await open(page, `/oauth/authorize?${query}`);
    await assertSound(page);
    await page.getByLabel("Email").fill(workspace.owner.email);
    await page.getByLabel("Password").fill(workspace.owner.password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("button", { name: "Allow" }).waitFor();
    assert.ok((await page.getByRole("main").innerText()).includes(name));
    await assertHarmless(page);
    await page.getByLabel("Workspace").selectOption(workspace.id);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL(url => url.href.startsWith(callback));
    const code = new URL(page.url()).searchParams.get("code");
    const fields = { grant_type: "authorization_code", code, client_id, redirect_uri: callback, code_verifier: verifier, resource: `${base}/mcp` };
    const answer = await fetch(`${base}/oauth/token`, { method: "POST", body: new URLSearchParams(fields) });
    assert.equal(answer.status, 200, await answer.clone().text());
    await open(page, `${workspace.at}/apps`);
    await page.getByText(name).first().waitFor();
    await assertHarmless(page);
    await page.getByRole("button", { name: /^End/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^End/ }).click();
    await page.getByText(/^Ended/).waitFor();
    assert.equal(await page.getByText(name).count(), 0);
  });
});
