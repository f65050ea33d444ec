// Every page and state of the console, over a workspace with an item for each.
import { inForm, open } from "./browser.mjs";
import { eventually, Workspace } from "./server.mjs";
import { ALL_TYPES, member, Table } from "./tables.mjs";

const NOTES = `---
title: How we ship
owner: Ada
---
# How we ship

Releases leave on **Tuesdays**, see [the limits](limits.json) and [[Handbook]].

- [x] tests are green
- [ ] the changelog is written

| Step | Who |
|:-----|----:|
| tag  | Ada |
| push | Bob |

> [!WARNING]
> The rollback window is seven days.

## Quorum of the walrus council

The walrus council decides with a quorum of five.

\`\`\`json
{ "quorum": 5 }
\`\`\`
`;

/** A database with every field type, and two records with a value in each. */
async function filled(workspace, name, { page, file }) {
  const table = await Table.make(workspace, name, ALL_TYPES, { description: "What is to be done, and by when." });
  await workspace.call("POST", `${table.api}/fields`, { name: "After", type: "relation", config: { relationDatabaseId: table.id, multiple: true } });
  await table.read();
  const first = await table.add(
    { Name: "Write the changelog", Points: 3, Status: "Open", Areas: ["Docs", "People"], Due: "2026-12-01", Urgent: true, Link: "https://example.com/changelog", Note: "Every change that people see,\nin words of theirs.", File: file.id },
    { contentFileId: page.id },
  );
  const second = await table.add({ Name: "Push the tag", Points: 1, Status: "Done", After: [first] });
  const kept = await table.view("Open ones", { filters: [{ fieldId: table.fields.Status, operator: "equals", value: "Open" }], sorts: [{ fieldId: table.fields.Points, direction: "desc" }], hiddenFieldIds: [table.fields.Picture] });
  return Object.assign(table, { first, second, kept });
}

/** Databases: one with more records than a page shows; a short one for the states of the grid, since checking a long grid
 * takes most of the time; one without records; one in trash. */
async function tables(workspace, { plans, notes }) {
  const page = await workspace.file("Step one.md", "# Step one\n\nDo it.\n", { folderId: plans.id });
  const table = await filled(workspace, "Tasks", { page, file: notes });
  for (let at = 0; at < 58; at += 1) await table.add({ Name: `Task ${at}`, Points: at * 7, Status: at % 2 ? "Open" : "Done", Urgent: at % 3 === 0, Due: `2026-12-${String(at % 28 + 1).padStart(2, "0")}` });
  const short = await filled(workspace, "Errands", { page: await workspace.file("Step two.md", "# Step two\n\nDo that.\n", { folderId: plans.id }), file: notes });
  await short.change(short.second, { Points: 2 });
  short.gone = await short.add({ Name: "Dropped task" });
  await short.trash(short.gone);
  const bare = await Table.make(workspace, "Ideas");
  const shelved = await Table.make(workspace, "Old tasks");
  await workspace.trash("database", shelved.id);
  return { table, short, bare, shelved };
}

/** Memories: a public one with a file, a folder and a database, an empty one, one in trash. */
async function memories(workspace, { plans, notes, archive }, { table }) {
  const make = fields => workspace.call("POST", "/api/v1/memories", fields);
  const members = [member("file", notes.id), member("folder", plans.id), member("database", table.id)];
  const memory = await make({ name: "How we release", useWhen: "before a release is made,\nor when somebody asks how one is made", description: "All that a release takes.", isPublic: true, members });
  const broad = await make({ name: "Archive of entries", members: [member("folder", archive.id)] });
  const hollow = await make({ name: "Nothing yet" });
  const forgotten = await make({ name: "Forgotten" });
  await workspace.call("DELETE", `/api/v1/memories/${forgotten.id}`);
  return { memory, broad, hollow, forgotten };
}

/** A workspace with folders, files of each type, databases, memories, versions, items in trash, tokens, members and an app. */
export async function seeded() {
  const workspace = await Workspace.open("Field notes");
  const { owner } = workspace;
  const [plans, empty, archive] = [await workspace.folder("Plans"), await workspace.folder("Empty"), await workspace.folder("Archive")];
  await workspace.folder("Quarter one", plans.id);
  const notes = await workspace.file("How we ship.md", NOTES, { folderId: plans.id, tags: ["process", "release"] });
  const json = await workspace.file("limits.json", '{\n  "files": 2000,\n  "open": true,\n  "name": "free"\n}\n', { fileType: "json", folderId: plans.id });
  const yaml = await workspace.file("deploy.yaml", "# who may\nwho: [ada, bob]\nsize: 3\n", { fileType: "yaml" });
  const blank = await workspace.file("blank.md", "");
  const large = await workspace.file("large.txt", Array.from({ length: 600 }, (_, at) => `line ${at} of a text that is shown in parts ${"and long ".repeat(110)}\n`).join(""), { fileType: "text" });
  for (let at = 0; at < 55; at += 1) await workspace.file(`entry ${String(at).padStart(2, "0")}.md`, `Entry ${at}.\n`, { folderId: archive.id });
  const cited = await workspace.file("cited.md", "# Limits\n\nThe limit is 100 a day.\n\nNothing else.\n");
  const { contentHash: older } = await workspace.read(cited.id);
  await workspace.write(cited.id, "# Limits\n\nSince May there are others.\n\nThe limit is 250 a day.\n\nNothing else.\n");
  const gone = await workspace.file("gone.md", "No longer needed.\n");
  await workspace.trash("file", gone.id);
  const shelf = await workspace.folder("Old shelf");
  await workspace.file("inside.md", "x", { folderId: shelf.id });
  await workspace.trash("folder", shelf.id);
  const viewer = await workspace.member("viewer", "Vera Reader");
  const editor = await workspace.member("editor", "Eddie Keeper");
  await workspace.invite("waits@example.com", "editor");
  const fields = { name: "Reader of plans", permissions: ["read"], scope: { type: "folders", folderIds: [plans.id] } };
  const token = await owner.call("POST", `/api/workspaces/${workspace.id}/tokens`, fields);
  const off = await owner.call("POST", `/api/workspaces/${workspace.id}/tokens`, { name: "Switched off", permissions: ["read"] });
  await owner.call("PATCH", `/api/workspaces/${workspace.id}/tokens/${off.id}`, { active: false });
  const data = await tables(workspace, { plans, notes });
  const kept = await memories(workspace, { plans, notes, archive }, data);
  const sent = await workspace.call("POST", "/api/v1/ingest", { idempotencyKey: "minutes", title: "Minutes of May", content: NOTES, url: "https://wiki.example/minutes" });
  // The host does not exist: its runs fail.
  const web = { name: "Manual", provider: "web", settings: { kind: "page", url: "https://docs.invalid/" } };
  const source = await owner.call("POST", `/api/workspaces/${workspace.id}/sources`, web);
  const hook = { name: "Search mirror", url: "https://hooks.invalid/changes", kinds: ["file", "record"], folderIds: [plans.id] };
  const webhook = await owner.call("POST", `/api/workspaces/${workspace.id}/webhooks`, hook);
  await workspace.searchable("walrus");
  await owner.call("PATCH", `/api/workspaces/${workspace.id}`, { questionLogDays: 30 });
  const question = await asked(workspace, "who decides in the walrus council");
  const gap = await asked(workspace, "zzqx yyqx -walrus");
  return Object.assign(workspace, { sent, source, webhook, question, gap, plans, empty, archive, notes, json, yaml, blank, large, cited, older, gone, shelf, viewer, editor, seedToken: token }, data, kept);
}

/** A question, once it is in the log. */
async function asked(workspace, query) {
  return eventually(`"${query}" in the log`, async () => {
    await workspace.call("POST", "/api/v1/search_context", { query });
    const listed = await workspace.owner.call("GET", `/api/workspaces/${workspace.id}/questions`);
    return listed.find(one => one.query === query);
  });
}

const press = name => page => page.getByRole("button", { name, exact: true }).first().click();

/** The views: a name, a path, the status, the viewer (the owner; `null` is anonymous), and the steps to take there. */
export function views(seed) {
  const { at, owner, viewer } = seed;
  const file = one => `/file/${one.id}`;
  const of = (as, list) => list.map(([name, path, status = 200, then]) => ({ name, path, status, as, then }));
  const cited = `lines=3-3&hash=${encodeURIComponent(seed.older)}`;
  return [
    ...of(null, [
      ["sign-in", "/sign-in"],
      ["sign-in wrong", "/sign-in", 200, async page => {
        await page.getByLabel("Email").fill("nobody@example.com");
        await page.getByLabel("Password").fill("wrong");
        await press("Sign in")(page);
        await page.getByRole("alert").waitFor();
      }],
      ["invite without a code", "/invite"],
      ["guides", "/docs/guides"],
      ["public memory", `/m/${seed.memory.id}`],
      ["public memory text", `/m/${seed.memory.id}?text=1`],
    ]),
    ...of(owner, [
      ["account", "/account"],
      ["account wrong password", "/account", 200, async page => {
        await press("Change password")(page);
        await page.getByRole("heading", { name: "Account" }).waitFor();
      }],
      ["workspaces", "/workspaces"],
      ["overview", at],
      ["connect", `${at}/connect`],
      ["search", `${at}/search`],
      ["search results", `${at}/search?q=${encodeURIComponent("quorum of the walrus council")}`],
      ["search trace", `${at}/search?q=walrus`, 200, page => page.getByText("How the score came about").first().click()],
      ["search copied", `${at}/search?q=walrus`, 200, page => page.getByText("Copy this search").click()],
      ["search nothing", `${at}/search?q=zzqx&strategy=keyword`],
      ["golden", `${at}/golden`],
      ["missing file", `${at}/search/absence?q=walrus&find=how`],
      ["missing checks", `${at}/search/absence?q=${encodeURIComponent("walrus -council")}&document=${seed.notes.id}`],
      ["missing in trash", `${at}/search/absence?q=walrus&document=${seed.gone.id}`],
      ["file in the index", `${file(seed.notes)}/index`],
      ["search too long", `${at}/search?q=${"x".repeat(5000)}`],
      ["go", `${at}/go?q=ship`],
      ["palette", at, 200, async page => {
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Go to" }).fill("ship");
        await page.getByRole("option", { name: /How we ship/ }).first().waitFor();
      }],
      ["script", `${at}/search?view=script`],
      ["script output", `${at}/search?view=script&script=${encodeURIComponent("grep -rn walrus /files | head")}`],
      ["files", `${at}/files`],
      ["files in a folder", `${at}/files?folder=${seed.plans.id}`],
      ["files in pages", `${at}/files?folder=${seed.archive.id}`],
      ["files of an empty folder", `${at}/files?folder=${seed.empty.id}`],
      ["files not found", `${at}/files?q=zzqx`],
      ["files tagged", `${at}/files?tag=process`],
      ["files new", `${at}/files`, 200, press("New file")],
      ["files new refused", `${at}/files`, 200, async page => {
        await press("New file")(page);
        const name = page.getByRole("dialog").or(page.locator("[popover]")).getByRole("textbox", { name: "Name" }).first();
        await name.fill("x".repeat(300));
        await inForm(name, "Create file").click();
        await page.waitForLoadState();
      }],
      ["files upload", `${at}/files`, 200, press("Upload")],
      ["folder in trash", `${at}/files?folder=${seed.shelf.id}`, 404],
      ["file", file(seed.notes)],
      ["file cited", `${file(seed.notes)}?lines=23-23#L23`],
      ["file cited before", `${file(seed.cited)}?${cited}`],
      ["file source", `${file(seed.notes)}?view=source&lines=7-9`],
      ["file changes", `${file(seed.cited)}?view=changes`],
      ["file uses", `${file(seed.notes)}?view=uses`],
      ["file json", file(seed.json)],
      ["file yaml", file(seed.yaml)],
      ["file empty", file(seed.blank)],
      ["file in parts", `${file(seed.large)}?line=300`],
      ["file rename", file(seed.notes), 200, press("Rename")],
      ["file move", file(seed.notes), 200, press("Move")],
      ["file tags", file(seed.notes), 200, press("Tags")],
      ["file edit", `${file(seed.notes)}/edit`],
      ["file edit preview", `${file(seed.notes)}/edit`, 200, async page => {
        await press("Preview")(page);
        await page.getByRole("heading", { name: "Preview" }).waitFor();
      }],
      ["file edit refused", `${file(seed.json)}/edit`, 200, async page => {
        await page.getByLabel("Text").fill('{"open": }');
        await press("Save")(page);
        await page.getByRole("button", { name: "Save anyway" }).waitFor();
      }],
      ["file edit conflict", `${file(seed.yaml)}/edit`, 200, async page => {
        await page.getByLabel("Text").fill("who: [ada]\nsize: 4\n");
        await seed.write(seed.yaml.id, `# who may\nwho: [ada, bob, eve]\nsize: ${Date.now()}\n`);
        await press("Save")(page);
        await page.getByRole("button", { name: "Keep mine" }).waitFor();
      }],
      ["file version", `${file(seed.cited)}/versions/2`],
      ["file version since", `${file(seed.cited)}/versions/1?show=now`],
      ["file version text", `${file(seed.cited)}/versions/1?show=text`],
      ["file in trash", file(seed.gone), 404],
      ["databases", `${at}/databases`],
      ["databases new", `${at}/databases`, 200, press("New database")],
      ["databases from a table", `${at}/databases/import`, 200, async page => {
        const table = "Name,Points,Due\nwrite,1,2026-11-23\nread,2,\n";
        await page.getByLabel("Table", { exact: true }).setInputFiles({ name: "May.csv", mimeType: "text/csv", buffer: Buffer.from(table) });
        await press("Upload")(page);
        await page.getByRole("heading", { name: "What the columns become" }).waitFor();
      }],
      ["databases new refused", `${at}/databases`, 200, async page => {
        await press("New database")(page);
        const name = page.getByRole("textbox", { name: "Name" }).filter({ visible: true });
        await name.fill("x".repeat(600));
        await inForm(name, "Create database").click();
        await page.getByRole("alert").waitFor();
      }],
      ["database", seed.table.at],
      ["database last page", `${seed.table.at}?page=2`],
      ["database view", `${seed.table.at}?view=${seed.table.kept.id}`],
      ["database filtered", `${seed.table.at}?filter=${seed.table.fields.Points}:gte:100&sort=${seed.table.fields.Points}:desc`],
      ["database in groups", `${seed.short.at}?group=${seed.short.fields.Status}`],
      ["database in groups by month", `${seed.table.at}?group=${seed.table.fields.Due}:month`],
      ["database filter wrong", `${seed.table.at}?filter=${seed.table.fields.Points}:gte:many`, 400],
      ["database nothing found", `${seed.table.at}?q=zzqx`],
      ["database empty", seed.bare.at],
      ["database rename", seed.short.at, 200, press("Rename")],
      ["database save view", seed.short.at, 200, press("Save as view")],
      ["database change view", seed.short.at, 200, press("Change view")],
      ["database delete view", `${seed.short.at}?view=${seed.short.kept.id}`, 200, page => page.getByRole("button", { name: /^Delete view/ }).click()],
      ["database cell", `${seed.short.at}?cell=${seed.short.first}:${seed.short.fields.Points}`],
      ["database cell of several", `${seed.short.at}?cell=${seed.short.first}:${seed.short.fields.Areas}`],
      ["database cell refused", `${seed.short.at}?cell=${seed.short.first}:${seed.short.fields.Link}`, 200, async page => {
        await page.getByRole("textbox", { name: "Link" }).fill("not:an address");
        await press("Save")(page);
        await page.getByRole("alert").first().waitFor();
      }],
      ["record", `${seed.table.at}?record=${seed.table.first}`],
      ["record new", `${seed.short.at}?record=new`],
      ["record versions", `${seed.short.at}?record=${seed.short.second}&show=versions`],
      ["record backlinks", `${seed.short.at}?record=${seed.short.first}&show=backlinks`],
      ["record refused", `${seed.short.at}?record=new`, 200, async page => {
        await page.getByRole("textbox", { name: "Link" }).fill("https://");
        await page.getByRole("complementary").locator("form").first().evaluate(form => { form.noValidate = true; });
        await press("Create record")(page);
        await page.getByRole("alert").first().waitFor();
      }],
      ["record conflict", `${seed.short.at}?record=${seed.short.second}`, 200, async page => {
        await page.getByRole("complementary").getByLabel("Points").fill("11");
        await seed.short.change(seed.short.second, { Points: Date.now() % 100000 });
        await press("Save")(page);
        await page.getByRole("button", { name: "Keep mine" }).waitFor();
      }],
      ["record in trash", `${seed.short.at}?record=${seed.short.gone}`, 404],
      ["database in trash", seed.shelved.at, 404],
      ["fields", `${seed.table.at}/fields`],
      ["fields change", `${seed.table.at}/fields`, 200, page => page.getByText("Rename or change").nth(2).click()],
      ["fields delete", `${seed.table.at}/fields`, 200, page => page.getByRole("button", { name: /^Delete/ }).first().click()],
      ["fields refused", `${seed.table.at}/fields`, 200, async page => {
        const name = page.getByRole("textbox", { name: "Name", exact: true }).filter({ visible: true }).last();
        await name.fill("x".repeat(600));
        await press("Add field")(page);
        await page.getByRole("alert").waitFor();
      }],
      ["memories", `${at}/memories`],
      ["memory", `/memories/${seed.memory.id}`],
      ["memory found", `/memories/${seed.memory.id}?q=e`],
      ["memory nothing found", `/memories/${seed.memory.id}?q=zzqx`],
      ["memory of many", `/memories/${seed.broad.id}`],
      ["memory empty", `/memories/${seed.hollow.id}`],
      ["memory publish", `/memories/${seed.hollow.id}`, 200, page => page.getByRole("button", { name: /^Make public/ }).click()],
      ["memory version", `/memories/${seed.memory.id}/versions/1`],
      ["memory new", `${at}/memories/new`],
      ["memory new refused", `${at}/memories/new`, 200, async page => {
        await page.getByLabel("Name", { exact: true }).fill("Another");
        await page.getByLabel("Short name").fill("No Slug");
        await press("Create memory")(page);
        await page.getByRole("alert").waitFor();
      }],
      ["memory edit", `/memories/${seed.memory.id}/edit`],
      ["memory in trash", `/memories/${seed.forgotten.id}`, 404],
      ["analytics", `${at}/analytics`],
      ["analytics of a week", `${at}/analytics?days=7`],
      ["activity", `${at}/activity`],
      ["activity change", `${at}/activity?kind=file`, 200, page => page.getByRole("link", { name: /^What it changed/ }).first().click()],
      ["activity nothing", `${at}/activity?day=2001-01-01`],
      ["undo plan", `${at}/activity`, 200, page => page.getByRole("link", { name: /^Undo…/ }).first().click()],
      ["documents", `${at}/documents`],
      ["documents not found", `${at}/documents?q=zzqx`],
      ["document", `/documents/${seed.sent.id}?lines=7-9`],
      ["document stale", `/documents/${seed.sent.id}?lines=7-9&hash=blake3:00`],
      ["document stale quoted", `/documents/${seed.sent.id}?lines=7-9&hash=blake3:00&quote=${encodeURIComponent(seed.sent.title)}`],
      ["document delete", `/documents/${seed.sent.id}`, 200, press("Delete…")],
      ["sources", `${at}/sources`],
      ["source", `${at}/sources/${seed.source.id}`],
      ["source runs", `${at}/sources/${seed.source.id}/runs`],
      ["source change", `${at}/sources/${seed.source.id}/change`],
      ["source disconnect", `${at}/sources/${seed.source.id}`, 200, press("Disconnect…")],
      ["source provider", `${at}/sources/new`],
      ["source connect", `${at}/sources/new?provider=github`],
      ["source refused", `${at}/sources/new?provider=web`, 200, async page => {
        await press("Test")(page);
        await page.getByRole("alert").waitFor();
      }],
      ["webhooks", `${at}/webhooks`],
      ["webhook", `${at}/webhooks/${seed.webhook.id}`],
      ["webhook pinged", `${at}/webhooks/${seed.webhook.id}`, 200, async page => {
        await press("Send a ping")(page);
        await page.getByText("Not arrived").waitFor();
      }],
      ["webhook change", `${at}/webhooks/${seed.webhook.id}/change`],
      ["webhook new secret", `${at}/webhooks/${seed.webhook.id}`, 200, press("New secret…")],
      ["webhook delete", `${at}/webhooks/${seed.webhook.id}`, 200, press("Delete…")],
      ["webhooks new", `${at}/webhooks/new`],
      ["webhooks new refused", `${at}/webhooks/new`, 200, async page => {
        await page.getByLabel("Name").fill("Mirror");
        await page.getByLabel("Address").fill("ftp://hooks.invalid");
        await press("Make webhook")(page);
        await page.getByRole("alert").waitFor();
      }],
      ["webhooks made", `${at}/webhooks/new`, 200, async page => {
        await page.getByLabel("Name").fill(`Shown ${Date.now()}`);
        await page.getByLabel("Address").fill("https://hooks.invalid/shown");
        await press("Make webhook")(page);
        await page.getByRole("textbox", { name: "Secret" }).waitFor();
      }],
      ["trash", `${at}/trash`],
      ["trash of somebody", `${at}/trash`, 200, async page => {
        await page.getByLabel("Deleted by").selectOption({ index: 1 });
        await press("Show")(page);
        await page.waitForURL(/who=/);
      }],
      ["trash delete", `${at}/trash`, 200, page => page.getByRole("button", { name: /^Delete/ }).first().click()],
      ["tokens", `${at}/tokens`],
      ["tokens delete", `${at}/tokens`, 200, page => page.getByRole("button", { name: /^Delete/ }).first().click()],
      ["token", `${at}/tokens/${seed.seedToken.id}`],
      ["files as a token", `${at}/files?as=${seed.seedToken.id}`],
      ["databases as a token", `${at}/databases?as=${seed.seedToken.id}`],
      ["search as a token", `${at}/search?q=walrus&as=${seed.seedToken.id}`],
      ["freshness", `${at}/freshness`],
      ["tokens new", `${at}/tokens/new`],
      ["tokens new reach", `${at}/tokens/new`, 200, async page => {
        await press("What it reaches")(page);
        await page.getByText(/reaches/).last().waitFor();
      }],
      ["tokens new refused", `${at}/tokens/new`, 200, async page => {
        await page.getByLabel("Name").fill("x".repeat(300));
        await press("Create token")(page);
        await page.waitForLoadState();
      }],
      ["tokens made", `${at}/tokens/new`, 200, async page => {
        await page.getByLabel("Name").fill(`Shown ${Date.now()}`);
        await press("Create token")(page);
        await page.getByRole("textbox", { name: "Token" }).waitFor();
      }],
      ["questions", `${at}/questions`],
      ["questions in groups", `${at}/questions?view=groups`],
      ["questions that are gaps", `${at}/questions?view=gaps`],
      ["question", `${at}/questions/${seed.question.id}`],
      ["question asked again", `${at}/questions/${seed.question.id}?again=1`],
      ["question without an answer", `${at}/questions/${seed.gap.id}`],
      ["question delete", `${at}/questions/${seed.question.id}`, 200, page => page.getByRole("button", { name: /^Delete/ }).first().click()],
      ["write the file", `${at}/questions/write?q=${seed.gap.id}`],
      ["apps", `${at}/apps`],
      ["members", `${at}/members`],
      ["members remove", `${at}/members`, 200, page => page.getByRole("button", { name: /^Remove/ }).first().click()],
      ["members invited", `${at}/members`, 200, async page => {
        await page.getByLabel("Email").fill(`guest${Date.now()}@example.com`);
        await press("Invite")(page);
        await page.getByRole("textbox", { name: "Link" }).waitFor();
      }],
      ["import", `${at}/import`],
      ["sync", `${at}/sync`],
      ["health", `${at}/health`],
      ["settings", `${at}/settings`],
      ["settings refused", `${at}/settings`, 200, async page => {
        await page.getByLabel(/name of the workspace/i).fill("another");
        await press("Delete workspace")(page);
        await page.waitForLoadState();
      }],
      ["keys", at, 200, page => page.keyboard.press("?")],
      ["nothing there", `${at}/nothing`, 404],
      ["somebody else's workspace", "/w/01a20912-0000-7000-8000-000000000000", 404],
    ]),
    ...of(viewer, [
      ["viewer files", `${at}/files`],
      ["viewer file", file(seed.notes)],
      ["viewer edit", `${file(seed.notes)}/edit`, 403],
      ["viewer database", seed.short.at],
      ["viewer record", `${seed.short.at}?record=${seed.short.first}`],
      ["viewer fields", `${seed.short.at}/fields`],
      ["viewer memory", `/memories/${seed.memory.id}`],
      ["viewer analytics", `${at}/analytics`, 403],
      ["viewer trash", `${at}/trash`],
      ["viewer members", `${at}/members`],
      ["viewer settings", `${at}/settings`],
      ["viewer questions", `${at}/questions`],
      ["viewer import", `${at}/import`],
      ["viewer webhooks", `${at}/webhooks`, 403],
    ]),
  ];
}

/** Opens a view. */
export async function openView(page, view) {
  await open(page, view.path, view.status);
  await view.then?.(page);
}

