// Journeys with the keyboard alone: Tab reaches every control and shows the focus, and single keys do what `?` says.
import assert from "node:assert/strict";
import test from "node:test";
import { browse, NARROW, open } from "./support/browser.mjs";
import { button, focusOn, focusOnId, focusOnType, tabTo } from "./support/keys.mjs";
import { Workspace } from "./support/server.mjs";
import { ALL_TYPES, Table } from "./support/tables.mjs";

test("somebody signs in, makes a file and deletes it without a mouse", async () => {
  const workspace = await Workspace.open();
  for (const viewport of [undefined, NARROW]) {
    const name = viewport ? "narrow.md" : "wide.md";
    await browse({ viewport }, async page => {
      await page.goto(`${workspace.at}/files`);
      await tabTo(page, page.getByLabel("Email"));
      await page.keyboard.type(workspace.owner.email);
      await page.keyboard.press("Tab");
      await page.keyboard.type(workspace.owner.password);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/files$/);
      // The first tab stop skips the navigation.
      await page.keyboard.press("Tab");
      await focusOn(page, /^Skip/);
      await page.keyboard.press("Enter");
      await tabTo(page, button(page, "New file"));
      await page.keyboard.press("Enter");
      await tabTo(page, page.getByRole("textbox", { name: "Name", exact: true }).filter({ visible: true }));
      await page.keyboard.type(name);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/edit$/);
      await tabTo(page, page.getByLabel("Text"));
      await page.keyboard.type("written by keys");
      await tabTo(page, button(page, "Save"));
      await page.keyboard.press("Enter");
      await page.getByText("Saved.").waitFor();
      await tabTo(page, button(page, "Move to trash"));
      await page.keyboard.press("Enter");
      await tabTo(page, button(page, "Undo"));
      await page.keyboard.press("Enter");
      await page.getByText("Restored.").waitFor();
    });
  }
});

test("a dialog opens, keeps the focus, closes by Escape and gives the focus back", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/tokens`);
    const opener = page.getByRole("button", { name: /^Delete Seed/ });
    await tabTo(page, opener);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await focusOn(page, "Cancel");
    for (let presses = 0; presses < 6; presses += 1) {
      await page.keyboard.press("Tab");
      const isIn = await dialog.evaluate(element => element.contains(document.activeElement) || document.activeElement === document.body);
      assert.ok(isIn, "the focus left the dialog");
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await focusOn(page, (await opener.textContent()).trim());
  });
});

test("single keys go to places, walk rows and press what bears them", async () => {
  const workspace = await Workspace.open();
  const names = ["a.md", "b.md", "c.md"];
  for (const name of names) await workspace.file(name, `# ${name}\n`);
  await browse({ as: workspace.owner }, async page => {
    const places = { o: "", s: "/search", f: "/files", d: "/databases", m: "/memories", t: "/trash", k: "/tokens" };
    await open(page, workspace.at);
    for (const [key, path] of Object.entries(places)) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.waitForURL(url => url.pathname === workspace.at + path);
    }
    await open(page, `${workspace.at}/files`);
    for (const name of names) {
      await page.keyboard.press("j");
      await focusOn(page, name);
    }
    await page.keyboard.press("k");
    await focusOn(page, "b.md");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "b.md" }).waitFor();
    await page.keyboard.press("e");
    await page.waitForURL(/\/edit$/);
    // In a field they are letters.
    await page.getByLabel("Text").focus();
    await page.keyboard.type("gfn?");
    assert.match(page.url(), /\/edit$/);
    assert.match(await page.getByLabel("Text").inputValue(), /gfn\?/);
    await page.getByLabel("Text").fill("# b.md\n");

    await open(page, `${workspace.at}/files`);
    await page.keyboard.press("n");
    // An opened dialog takes the focus.
    await page.keyboard.type("typed at once.md");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/edit$/);
    await open(page, `${workspace.at}/search`);
    await page.keyboard.press("/");
    await page.keyboard.type("anything");
    assert.equal(await page.getByLabel("Question").inputValue(), "anything");
    await open(page, workspace.at);
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  });
});

test("rows are selected and sent to trash, results shown and forms sent by keys", async () => {
  const workspace = await Workspace.open();
  for (const name of ["a.md", "b.md"]) await workspace.file(name, `the walrus of ${name}\n`);
  await workspace.searchable("walrus");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/files`);
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    assert.ok(await page.getByRole("checkbox", { name: "Select a.md" }).isChecked());
    await page.keyboard.press("#");
    await page.getByText("Moved to trash.").waitFor();
    assert.equal(await page.getByRole("link", { name: "a.md" }).count(), 0);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored.").waitFor();

    await open(page, `${workspace.at}/search?q=walrus`);
    await page.keyboard.press("j");
    await focusOn(page, /^\/[ab]\.md/);
    await page.keyboard.press("t");
    await page.getByRole("region", { name: "Score of result 1" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await focusOn(page, /^\/[ab]\.md/);

    await open(page, `${workspace.at}/memories/new`);
    await tabTo(page, page.getByLabel("Name", { exact: true }));
    await page.keyboard.type("By keys");
    await page.keyboard.press("Tab");
    await page.keyboard.type("always");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("heading", { level: 1, name: "By keys" }).waitFor();
  });
});

test("on a phone the menu opens by keys and leads on", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner, viewport: NARROW }, async page => {
    await open(page, workspace.at);
    await tabTo(page, button(page, "Menu"));
    await page.keyboard.press("Enter");
    await tabTo(page, page.getByRole("link", { name: "Files" }));
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/files$/);
    await page.getByRole("heading", { level: 1, name: "Files" }).waitFor();
  });
});

test("a grid is walked by arrows, a cell is written and a record opened and left by keys", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Keys", ALL_TYPES);
  const first = await table.add({ Name: "one", Points: 1 });
  await table.add({ Name: "two", Points: 2 });
  await browse({ as: workspace.owner }, async page => {
    await open(page, table.at);
    const cell = page.locator(`[data-record="${first}"] > [data-field]`);
    await tabTo(page, cell);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByRole("spinbutton", { name: "Points" }).waitFor();
    await focusOnType(page, "number");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("12");
    await page.keyboard.press("Enter");
    await page.getByRole("cell", { name: "12", exact: true }).waitFor();
    assert.equal((await table.record(first)).of.Points, 12);
    // The focus is preserved, and moves on from there.
    await focusOn(page, "12");
    await page.keyboard.press("ArrowDown");
    await focusOn(page, "2");
    await page.keyboard.press("Enter");
    await page.keyboard.type("9");
    await page.keyboard.press("Escape");
    await page.getByRole("cell", { name: "2", exact: true }).waitFor();

    await open(page, table.at);
    await page.keyboard.press("j");
    await focusOn(page, "one");
    await page.keyboard.press("Enter");
    await page.waitForURL(/record=/);
    // The heading of the record.
    await focusOn(page, "one");
    await page.keyboard.press("Escape");
    await page.waitForURL(url => !url.searchParams.has("record"));
    await focusOnId(page, `r-${first}`);
    await page.keyboard.press("n");
    await page.waitForURL(/record=new/);
    await tabTo(page, page.getByRole("complementary").getByLabel("Name", { exact: true }));
    await page.keyboard.type("three");
    await page.keyboard.press("Enter");
    await page.getByText("Created.").waitFor();
  });
});

test("the palette goes to pages and to things by their names", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("quarterly.md", "x");
  await browse({ as: workspace.owner }, async page => {
    await page.goto(workspace.at);
    const field = page.getByRole("combobox", { name: "Go to" });
    await page.keyboard.press("Control+k");
    await page.keyboard.type("trash");
    await page.getByRole("option", { name: /^Trash/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/trash$/);
    await page.keyboard.press("Control+k");
    // The last destination comes first.
    assert.match(await page.getByRole("option").first().textContent(), /^Trash/);
    await page.keyboard.type("quarterly");
    await page.getByRole("option", { name: /quarterly/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/file/${file.id}`));
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "hidden" });
  });
});
