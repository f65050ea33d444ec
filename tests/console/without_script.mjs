// The same journeys in a browser with JavaScript disabled.
import assert from "node:assert/strict";
import test from "node:test";
import { browse, inForm, NARROW, open, signIn } from "./support/browser.mjs";
import { Workspace } from "./support/server.mjs";
import { ALL_TYPES, Table } from "./support/tables.mjs";

const visible = (page, name) => page.getByRole("textbox", { name, exact: true }).filter({ visible: true });

test("files are made, edited, moved, deleted and restored without a script", async () => {
  const workspace = await Workspace.open();
  await workspace.folder("Shelf");
  for (const viewport of [undefined, NARROW]) {
    const name = viewport ? "narrow.md" : "wide.md";
    await browse({ viewport, javaScriptEnabled: false }, async page => {
      await page.goto(`${workspace.at}/files`);
      await signIn(page, workspace.owner);
      await page.getByRole("button", { name: "New file" }).click();
      await visible(page, "Name").fill(name);
      await inForm(visible(page, "Name"), "Create file").click();
      await page.waitForURL(/\/edit$/);
      await page.getByLabel("Text").fill("# Plain\n");
      await page.getByRole("button", { name: "Preview" }).click();
      await page.getByRole("heading", { name: "Plain" }).waitFor();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved.").waitFor();
      await page.getByRole("button", { name: "Move", exact: true }).click();
      const folder = page.getByRole("combobox", { name: "Folder" }).filter({ visible: true });
      await folder.selectOption({ label: "/Shelf" });
      await inForm(folder, "Move").click();
      await page.getByText(`/Shelf/${name}`).first().waitFor();
      await page.getByRole("button", { name: "Move to trash" }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Restored.").waitFor();
    });
  }
});

test("a conflict is settled without a script", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("shared.md", "one\n");
  await browse({ as: workspace.owner, javaScriptEnabled: false }, async page => {
    await open(page, `/file/${file.id}/edit`);
    await page.getByLabel("Text").fill("mine\n");
    await workspace.write(file.id, "theirs\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await workspace.read(file.id)).content, "mine\n");
  });
});

test("tokens, members and the account work without a script", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner, javaScriptEnabled: false }, async page => {
    await open(page, `${workspace.at}/tokens/new`);
    await page.getByLabel("Name").fill("By hand");
    await page.getByRole("button", { name: "What it reaches" }).click();
    await page.getByText(/reaches the whole workspace/).waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "By hand");
    await page.getByRole("button", { name: "Create token" }).click();
    assert.ok((await page.getByRole("textbox", { name: "Token" }).inputValue()).length > 20);
    await page.getByRole("link", { name: "Done" }).click();
    await page.getByRole("row", { name: /By hand/ }).getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Delete/ }).click();
    await page.getByText(/Deleted/).first().waitFor();
    await open(page, `${workspace.at}/members`);
    await page.getByLabel("Email").fill("by.hand@example.com");
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByRole("textbox", { name: "Link" }).waitFor();
    await open(page, "/account");
    await page.getByLabel("Theme").selectOption({ label: "Dark" });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText(/Changed for this browser/).waitFor();
  });
});

test("a search leads to its lines without a script", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("ferry.md", "# Ferry\n\nThe ferry to the lighthouse leaves at six.\n");
  await workspace.searchable("lighthouse");
  await browse({ as: workspace.owner, javaScriptEnabled: false, viewport: NARROW }, async page => {
    await open(page, `${workspace.at}/search`);
    await page.getByLabel("Question").fill("lighthouse");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("Copy this search").click();
    await page.getByText("tools/call").waitFor();
    await page.getByRole("link", { name: /ferry\.md/ }).first().click();
    await page.waitForURL(url => url.pathname === `/file/${file.id}`);
    await page.locator("[aria-current=true]").filter({ hasText: "lighthouse" }).first().waitFor();
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await page.getByLabel("Text").fill("# Ferry\n\nThe ferry to the lighthouse leaves at seven.\n");
    await page.getByRole("button", { name: "Save and ask again" }).click();
    await page.waitForURL(/\/search\?q=lighthouse.*after=/);
    await page.getByText("leaves at seven").first().waitFor();
  });
});

test("an invitation is taken by its code without a script", async () => {
  const workspace = await Workspace.open();
  const link = await workspace.invite("no.script@example.com", "viewer");
  await browse({ javaScriptEnabled: false }, async page => {
    await page.goto(link);
    await page.getByLabel("Invitation code").fill(link.split("#")[1]);
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByLabel("Your name").fill("Nils");
    await page.getByLabel("Your password").fill("correct horse battery");
    await page.getByRole("button", { name: "Join" }).click();
    await page.getByRole("link", { name: /^Open/ }).waitFor();
  });
});

test("records are filtered, made, changed, deleted and restored without a script", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Plain", ALL_TYPES);
  for (const [name, points] of [["a", 1], ["b", 20]]) await table.add({ Name: name, Points: points });
  for (const viewport of [undefined, NARROW]) {
    await browse({ as: workspace.owner, javaScriptEnabled: false, viewport }, async page => {
      await open(page, table.at);
      await page.getByLabel("Filter by").selectOption({ label: "Points" });
      await page.getByLabel("Condition").selectOption({ label: "is greater than" });
      await page.getByLabel("Value").fill("10");
      await page.getByRole("button", { name: "Apply" }).click();
      await page.getByRole("status").filter({ hasText: /records? found/ }).waitFor();
      await page.getByRole("link", { name: "New record" }).click();
      const form = page.getByRole("complementary");
      await form.getByLabel("Name", { exact: true }).fill("new");
      await form.getByLabel("Points").fill("30");
      await form.getByRole("button", { name: "Create record" }).click();
      await page.getByText("Created.").waitFor();
      await form.getByLabel("Points").fill("31");
      await form.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved.").waitFor();
      await form.getByRole("button", { name: /^Move to trash/ }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Restored.").waitFor();
    });
  }
});

test("a memory is made and filled without a script", async () => {
  const workspace = await Workspace.open();
  await workspace.file("steps of a release.md", "Tag, then push.\n");
  await browse({ as: workspace.owner, javaScriptEnabled: false }, async page => {
    await open(page, `${workspace.at}/memories/new`);
    await page.getByLabel("Name", { exact: true }).fill("Releasing");
    await page.getByRole("button", { name: "Create memory" }).click();
    const find = page.getByRole("searchbox", { name: /^Add/ });
    await find.fill("steps");
    await inForm(find, "Find").click();
    await page.getByRole("button", { name: /^Add .*steps of a release/ }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("region", { name: "Members" }).getByRole("link", { name: "steps of a release.md" }).waitFor();
  });
});
