// Journeys over memories: creating, filling, reordering, publishing and unpublishing; and the analytics of questions.
import assert from "node:assert/strict";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open } from "./support/browser.mjs";
import { focusOn } from "./support/keys.mjs";
import { eventually, Workspace } from "./support/server.mjs";
import { member } from "./support/tables.mjs";

const holds = page => page.getByRole("region", { name: "Members" }).getByRole("rowheader");

test("a memory is made, filled, ordered, and goes and comes back", async () => {
  const workspace = await Workspace.open();
  const folder = await workspace.folder("Release plans");
  await workspace.file("inner.md", "word ".repeat(100), { folderId: folder.id });
  await workspace.file("release steps.md", "# Steps\n\nTag, then push.\n");
  for (const viewport of [undefined, NARROW]) {
    const name = viewport ? "On a phone" : "How we release";
    await browse({ as: workspace.owner, viewport }, async page => {
      await open(page, `${workspace.at}/memories`);
      await page.getByRole("link", { name: "New memory" }).click();
      await page.getByLabel("When to use it").fill("before a release\nis made");
      await page.getByLabel("Name", { exact: true }).fill(name);
      await page.getByRole("button", { name: "Create memory" }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
      const find = page.getByRole("searchbox", { name: /^Add/ });
      await find.fill("release");
      await inForm(find, "Find").click();
      await page.getByRole("checkbox", { name: /release steps/ }).check();
      await page.getByRole("checkbox", { name: /Release plans/ }).check();
      await assertSound(page);
      await page.getByRole("button", { name: "Add selected" }).click();
      await page.getByText("Saved.").waitFor();
      assert.equal(await holds(page).count(), 2);
      const first = await holds(page).first().innerText();
      await page.getByRole("button", { name: /^Move down/ }).first().click();
      await page.getByText("Saved.").waitFor();
      assert.equal(await holds(page).nth(1).innerText(), first);
      assert.match(await page.getByRole("main").innerText(), /about 1\d\d tokens/);
      await assertSound(page);
      await page.getByRole("link", { name: "Edit", exact: true }).click();
      await page.getByLabel("When to use it").fill("never");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Saved.").waitFor();
      await page.getByText("never", { exact: true }).waitFor();
      await page.getByRole("button", { name: /^Remove/ }).first().click();
      await page.getByText(/Taken out/).waitFor();
      assert.equal(await holds(page).count(), 1);
      const address = page.url();
      if (!viewport) {
        await page.getByRole("link", { name: "Versions" }).click();
        await assertSound(page);
        await page.getByRole("link", { name: "Version 3" }).click();
        await page.getByRole("button", { name: "Restore this version" }).waitFor();
        await assertSound(page);
        await page.getByRole("button", { name: "Restore this version" }).click();
        await page.getByText("Restored.").waitFor();
        assert.equal(await holds(page).count(), 2);
      }
      await page.getByRole("button", { name: "Move to trash" }).click();
      await page.getByText("Moved to trash.").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Restored.").waitFor();
      await open(page, address);
    });
  }
});

test("a public memory is read by anybody, until it is private again", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("open.md", "# Open\n\nThe *axolotl* is public.\n");
  const made = await workspace.call("POST", "/api/v1/memories", { name: "For everybody", members: [member("file", file.id)] });
  const path = `/memories/${made.id}`;
  await browse({ as: workspace.owner }, async page => {
    await open(page, path);
    await page.getByRole("button", { name: /^Make public/ }).click();
    const dialog = page.getByRole("dialog");
    assert.match(await dialog.innerText(), /without signing in/);
    await focusOn(page, "Cancel");
    await dialog.getByRole("button", { name: "Make public" }).click();
    await page.getByText("Public", { exact: true }).first().waitFor();
    await assertSound(page);
    await open(page, `/file/${file.id}?view=uses`);
    await page.getByRole("link", { name: "For everybody" }).waitFor();
  });
  await browse({ javaScriptEnabled: false, viewport: NARROW }, async page => {
    await open(page, `/m/${made.id}`);
    assert.match(await page.getByRole("main").innerText(), /axolotl/);
  });
  await browse({}, async page => {
    await open(page, `/m/${made.id}`);
    await assertSound(page);
  });
  await browse({ as: workspace.owner }, async page => {
    await open(page, path);
    await page.getByRole("button", { name: "Make private" }).click();
    await page.getByText("Saved.").waitFor();
    const asked = await fetch(new URL(`/m/${made.id}`, page.url()));
    assert.equal(asked.status, 404);
  });
});

test("what was asked is counted, in a chart and in its table", async () => {
  const workspace = await Workspace.open();
  await workspace.file("ferry.md", "The ferry leaves at six.\n");
  await workspace.searchable("ferry");
  await browse({ as: workspace.owner }, async page => {
    // A question is counted a moment after its answer.
    await eventually("the question counted", async () => {
      await open(page, `${workspace.at}/analytics?days=7`);
      return await page.getByText("Retrievals", { exact: true }).count() > 0;
    });
    for (const summary of await page.getByRole("main").locator("summary").all()) await summary.click();
    await assertSound(page);
    assert.ok(await page.getByRole("main").getByRole("table").count() > 0);
    assert.ok(await page.getByRole("img").count() > 0);
    await page.getByRole("link", { name: "90 days" }).click();
    await page.waitForURL(/days=90/);
    const [exported] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export CSV" }).click()]);
    assert.match(exported.suggestedFilename(), /\.csv$/);
  });
});
