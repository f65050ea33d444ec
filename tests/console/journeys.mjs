// Journeys with the mouse: signing in, the account, tokens, members. Elements are located by role and name.
import assert from "node:assert/strict";
import test from "node:test";
import { assertSound, browse, NARROW, open, signIn } from "./support/browser.mjs";
import { focusOn } from "./support/keys.mjs";
import { base, eventually, Person, unique, Workspace } from "./support/server.mjs";

test("whoever follows a link signs in and arrives where it leads", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("a.md", "# First\n\nsecond line\n");
  await browse({}, async page => {
    await page.goto(`/file/${file.id}?lines=3-3#L3`);
    assert.equal(new URL(page.url()).pathname, "/sign-in");
    await page.getByLabel("Email").fill(workspace.owner.email);
    await page.getByLabel("Password").fill("not this one");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByLabel("Email").inputValue(), workspace.owner.email);
    assert.match(await page.title(), /^Error: /);
    await assertSound(page);
    await signIn(page, workspace.owner);
    assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, `/file/${file.id}?lines=3-3`);
    await page.getByText("second line").waitFor();
  });
});

test("signing out in one tab ends the other", async () => {
  const workspace = await Workspace.open();
  const person = await workspace.member("editor");
  await browse({ as: person }, async (page, context) => {
    await open(page, `${workspace.at}/files`);
    const other = await context.newPage();
    await open(other, "/account");
    await other.getByRole("button", { name: "Sign out", exact: true }).click();
    await other.waitForURL(/sign-in/);
    await page.getByRole("link", { name: "Trash" }).click();
    await page.waitForURL(/\/sign-in\?return_to=/);
    await signIn(page, person);
    assert.equal(new URL(page.url()).pathname, `${workspace.at}/trash`);
  });
});

test("an account changes its password and how the console looks", async () => {
  const workspace = await Workspace.open();
  const person = await workspace.member("editor");
  const elsewhere = await new Person(person.email, person.password).signIn();
  await browse({ as: person }, async page => {
    await open(page, "/account");
    await page.getByLabel("Current password").fill("wrong");
    await page.getByLabel("New password").fill("another horse battery");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByRole("alert").or(page.getByRole("heading", { name: /problem|wrong/i })).first().waitFor();
    await assertSound(page);
    await page.getByLabel("Current password").fill(person.password);
    await page.getByLabel("New password").fill("another horse battery");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText(/password is changed/i).waitFor();
    assert.equal((await elsewhere.send("GET", "/api/session")).status, 401);

    await page.getByLabel("Theme").selectOption({ label: "Dark" });
    await page.getByLabel(/Single keys/).uncheck();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("status").first().waitFor();
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
    await page.keyboard.press("?");
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.getByLabel(/Single keys/).check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("status").first().waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.waitForURL(/sign-in/);
  });
});

test("a token's secret is shown once", async () => {
  const workspace = await Workspace.open();
  const plans = await workspace.folder("Plans");
  await workspace.file("in.md", "x", { folderId: plans.id });
  await workspace.file("out.md", "x");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/tokens`);
    await page.getByRole("link", { name: "New token" }).click();
    await page.getByLabel("Name").fill("Laptop of Ada");
    await page.getByLabel("Folders by their paths").fill("/Nowhere");
    await page.getByRole("button", { name: "What it reaches" }).click();
    await page.getByText(/no folder here: \/Nowhere/).waitFor();
    await page.getByLabel("Folders by their paths").fill("/Plans");
    await page.getByRole("button", { name: "What it reaches" }).click();
    await page.getByText(/\b1 file\b/).waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "Laptop of Ada");
    await page.getByRole("button", { name: "Create token" }).click();
    const field = page.getByRole("textbox", { name: "Token" });
    const secret = await field.inputValue();
    assert.ok(secret.length > 20);
    assert.ok(!page.url().includes(secret) && !(await page.title()).includes(secret));
    const asked = await fetch(`${base}/api/v1/files`, { headers: { authorization: `Bearer ${secret}` } });
    assert.deepEqual((await asked.json()).map(one => one.name), ["in.md"]);
    await assertSound(page);
    await page.reload();
    await page.getByText(/sent before|already/i).first().waitFor();
    assert.ok(!(await page.content()).includes(secret));
    await assertSound(page);
    await page.goto(`${workspace.at}/tokens`);
    const row = page.getByRole("row", { name: /Laptop of Ada/ });
    assert.equal(await row.count(), 1);
    assert.match(await row.innerText(), /\/Plans[\s\S]*over the API/);
    await row.getByRole("button", { name: /^Switch off/ }).click();
    await row.getByText("Switched off").waitFor();
    assert.equal((await fetch(`${base}/api/v1/files`, { headers: { authorization: `Bearer ${secret}` } })).status, 401);
    await row.getByRole("button", { name: /^Switch on/ }).click();
    await row.getByRole("button", { name: /^Switch off/ }).waitFor();
    await row.getByRole("button", { name: /^Replace/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Replace/ }).click();
    const newer = await page.getByRole("textbox", { name: "Token" }).inputValue();
    assert.notEqual(newer, secret);
    await assertSound(page);
    const opens = async one => (await fetch(`${base}/api/v1/files`, { headers: { authorization: `Bearer ${one}` } })).status;
    assert.deepEqual([await opens(newer), await opens(secret)], [200, 401]);
    await page.reload();
    await page.getByText(/sent before/).waitFor();
    await page.goto(`${workspace.at}/tokens`);
    assert.equal(await row.count(), 2);
    await row.filter({ has: page.getByText("Switched off", { exact: true }) }).getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Delete/ }).click();
    await page.getByText(/Deleted/).first().waitFor();
    await row.getByRole("button", { name: /^Delete/ }).click();
    const dialog = page.getByRole("dialog");
    await focusOn(page, "Cancel");
    await dialog.getByRole("button", { name: /^Delete/ }).click();
    await page.getByText(/Deleted/).first().waitFor();
    assert.equal(await row.count(), 0);
  });
});

test("somebody is invited, joins and may do what the role allows", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("a.md", "text\n");
  const email = `${unique("invited")}@example.com`;
  let link;
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/members`);
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Role", { exact: true }).selectOption("viewer");
    await page.getByRole("button", { name: "Invite" }).click();
    link = await page.getByRole("textbox", { name: "Link" }).inputValue();
    await page.reload();
    await page.getByText(/sent before|already/i).first().waitFor();
    assert.ok(!(await page.content()).includes(link.split("#")[1]));
  });
  await browse({ viewport: NARROW }, async page => {
    await page.goto(link);
    await page.getByRole("button", { name: "Join" }).waitFor();
    assert.ok(!page.url().includes("#"));
    await assertSound(page);
    await page.getByLabel("Your name").fill("Vera");
    await page.getByLabel("Your password").fill("correct horse battery");
    await page.getByRole("button", { name: "Join" }).click();
    await assertSound(page);
    await page.getByRole("link", { name: /^Open/ }).click();
    await page.waitForURL(url => url.pathname === workspace.at);
    await open(page, `/file/${file.id}`);
    for (const name of [/^Edit/, /^Move/, /^Rename/]) assert.equal(await page.getByRole("button", { name }).or(page.getByRole("link", { name })).count(), 0);
    await open(page, `/file/${file.id}/edit`, 403);
    assert.match(await page.getByRole("main").innerText(), /viewer[^]*owner/i);
  });
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/members`);
    const row = page.getByRole("row", { name: /Vera/ });
    await row.getByRole("combobox", { name: /Role/ }).selectOption("editor");
    await row.getByRole("button", { name: /Change/ }).click();
    await page.getByText(/role is changed/i).waitFor();
    await row.getByRole("button", { name: /^Remove/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Remove/ }).click();
    await page.getByText(/Removed/).first().waitFor();
    assert.equal(await row.count(), 0);
    await page.getByLabel("Email").fill(email);
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByRole("link", { name: "Done" }).click();
    await page.getByRole("button", { name: new RegExp(`^(Withdraw|Cancel).*${email}`) }).click();
    await page.getByText(/Withdrawn/).waitFor();
  });
});

test("a workspace is made, renamed, deleted by its name, and restored", async () => {
  const workspace = await Workspace.open();
  const name = unique("Garden");
  await browse({ as: workspace.owner }, async page => {
    await open(page, "/workspaces");
    await page.getByLabel("Name").fill(name);
    await page.getByRole("button", { name: "Create workspace" }).click();
    await page.waitForURL(/\/w\//);
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(`${name} B`);
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByText("Renamed.").waitFor();
    const typed = page.getByLabel(/name of the workspace/i);
    await typed.fill(name);
    await page.getByRole("button", { name: "Delete workspace" }).click();
    await page.getByRole("link", { name: /name of the workspace/i }).waitFor();
    await page.getByLabel(/name of the workspace/i).fill(`${name} B`);
    await page.getByRole("button", { name: "Delete workspace" }).click();
    await page.waitForURL(/\/workspaces$/);
    await assertSound(page);
    await page.getByRole("button", { name: `Restore ${name} B` }).click();
    await page.waitForURL(/\/w\//);
  });
});

test("the page that waits for an agent sees it come", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/connect`);
    const { token } = await workspace.owner.call("POST", `/api/workspaces/${workspace.id}/tokens`, { name: "Agent Smith", permissions: ["read"] });
    await fetch(`${base}/api/v1/files`, { headers: { authorization: `Bearer ${token}` } });
    await eventually("Connected", () => page.getByRole("status").filter({ hasText: /Connected/ }).count());
    await page.getByText("Cursor", { exact: true }).click();
    const link = await page.getByRole("link", { name: /Open in Cursor/ }).getAttribute("href");
    assert.ok(link.startsWith("cursor://") && !link.includes(token));
  });
});

test("pages follow what agents do, without a reload", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("followed.md", "# Followed\n\nas it was\n");
  await browse({ as: workspace.owner }, async (page, context) => {
    await open(page, workspace.at);
    await page.evaluate(() => { globalThis.isSame = true; });
    await workspace.file("appears.md", "x");
    await page.getByRole("link", { name: "appears.md" }).first().waitFor();
    assert.equal(await page.evaluate(() => globalThis.isSame), true, "the page was loaded anew");
    const reader = await context.newPage();
    await open(reader, `/file/${file.id}`);
    await workspace.write(file.id, "# Followed\n\nas an agent wrote it\n");
    await reader.getByText("as an agent wrote it").waitFor();
    await assertSound(reader);
  });
});
