// Touch and print: the size of controls under a coarse pointer, and what a printed page contains.
import assert from "node:assert/strict";
import test from "node:test";
import { browse, open } from "./support/browser.mjs";
import { Workspace } from "./support/server.mjs";
import { ALL_TYPES, member, Table } from "./support/tables.mjs";

/** Pages with every kind of control, created once. */
let made;
const pages = () => (made ??= make());

async function make() {
  const workspace = await Workspace.open();
  const folder = await workspace.folder("Plans");
  const file = await workspace.file("notes.md", "# Notes\n\nSee [elsewhere](https://example.com/x).\n", { folderId: folder.id });
  await workspace.write(file.id, "# Notes\n\nSee [elsewhere](https://example.com/x) twice.\n");
  const table = await Table.make(workspace, "Tasks", ALL_TYPES);
  const record = await table.add({ Name: "one", Status: "Open", Urgent: true });
  const memory = await workspace.call("POST", "/api/v1/memories", { name: "All", members: [member("file", file.id)] });
  await workspace.searchable("elsewhere");
  const { at } = workspace;
  return [workspace.owner, [
    at, `${at}/files`, `${at}/search?q=elsewhere`, `${at}/databases`, table.at, `${table.at}?record=${record}`, `${table.at}/fields`, `${at}/memories`,
    `/memories/${memory.id}`, `/memories/${memory.id}/edit`, `/file/${file.id}`, `/file/${file.id}?view=changes`, `/file/${file.id}/edit`,
    `${at}/tokens`, `${at}/tokens/new`, `${at}/members`, `${at}/trash`, `${at}/connect`, `${at}/settings`, `${at}/health`, `${at}/analytics`, "/account", "/workspaces",
  ]];
}

test("controls are large enough for fingers, and type for fields", async () => {
  const [owner, paths] = await pages();
  for (const as of [owner, undefined]) {
    await browse({ as, viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true }, async page => {
      const found = [];
      for (const path of as ? paths : ["/sign-in"]) {
        await open(page, path);
        assert.ok(await page.evaluate(() => matchMedia("(pointer: coarse)").matches), "the browser has no coarse pointer");
        const small = await page.evaluate(() => {
          const visible = one => one.checkVisibility() && one.getClientRects().length > 0;
          const low = [...document.querySelectorAll("button, .button, select, textarea, input:not([type=hidden], [type=checkbox], [type=radio]), summary, .tabs a, header a, nav li a")]
            .filter(one => visible(one) && one.getBoundingClientRect().height < 43.5);
          const fine = [...document.querySelectorAll("input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea")]
            .filter(one => visible(one) && Number.parseFloat(getComputedStyle(one).fontSize) < 16);
          return [...low, ...fine].map(one => `${one.outerHTML.slice(0, 90)}: ${one.getBoundingClientRect().height} px, ${getComputedStyle(one).fontSize}`);
        });
        found.push(...small.map(one => `${path}: ${one}`));
      }
      assert.deepEqual(found, []);
    });
  }
});

test("what is printed is the text alone, whole", async () => {
  const [owner, paths] = await pages();
  await browse({ as: owner, colorScheme: "dark" }, async page => {
    await page.emulateMedia({ media: "print" });
    for (const path of paths) {
      await open(page, path);
      const left = await page.evaluate(() => {
        const visible = one => one.checkVisibility() && one.getClientRects().length > 0;
        return [...document.querySelectorAll("header, nav, button, .button, dialog, [popover]")].filter(visible).map(one => one.outerHTML.slice(0, 90));
      });
      assert.deepEqual(left, [], path);
      assert.ok(await page.getByRole("heading", { level: 1 }).isVisible());
    }
    const [read] = paths.filter(path => /^\/file\/[^/?]+$/.test(path));
    await open(page, read);
    const address = await page.getByRole("link", { name: "elsewhere" }).evaluate(link => getComputedStyle(link, "::after").content);
    assert.match(address, /https:\/\/example\.com\/x/);
  });
});
