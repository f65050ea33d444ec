// With the keyboard alone: connecting and disconnecting a source, importing and rolling back an archive, undoing what an agent
// did.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import test from "node:test";
import { browse, open } from "./support/browser.mjs";
import { button, press, tabTo, type } from "./support/keys.mjs";
import { eventually, sourceRoot, unique, Workspace } from "./support/server.mjs";
import { zip } from "./support/zip.mjs";

const link = (page, name) => page.getByRole("link", { name, exact: typeof name === "string" }).filter({ visible: true });

/** A button of the open dialog: Tab does not leave the dialog, so its buttons are near. */
const inDialog = (page, name) => page.getByRole("dialog").getByRole("button", { name, exact: true });

test("a folder is connected, looked at and disconnected by keys", async () => {
  const workspace = await Workspace.open();
  const folder = `${sourceRoot}/${unique("manual")}`;
  mkdirSync(folder);
  writeFileSync(`${folder}/valve.md`, "# Valve\n\nThe bypass valve is opened by the green lever.\n");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/sources`);
    await press(page, link(page, "Connect a source"));
    await page.waitForURL(/\/sources\/new/);
    await press(page, link(page, "Folder"));
    await page.getByRole("heading", { name: "What it costs" }).waitFor();
    await type(page, page.getByLabel("Name", { exact: true }), "Manual");
    await type(page, page.getByLabel("Path"), folder);
    await press(page, button(page, "Test"));
    await page.getByText("It works").waitFor();
    await press(page, button(page, "Connect"));
    await page.getByRole("heading", { name: "Manual", level: 1 }).waitFor();
    await page.getByText(/1 document\b/).filter({ visible: true }).first().waitFor();
    await press(page, link(page, "1 document"));
    await page.waitForURL(/\/documents/);
    await press(page, link(page, /valve/i));
    await page.getByText("green lever").waitFor();
    await open(page, `${workspace.at}/sources`);
    await press(page, link(page, "Manual"));
    await page.getByRole("heading", { name: "Manual", level: 1 }).waitFor();
    await press(page, page.getByRole("button", { name: /^Disconnect/ }).filter({ visible: true }));
    await page.getByRole("dialog").waitFor();
    await press(page, inDialog(page, "Disconnect"));
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor();
    assert.equal(await link(page, "Manual").count(), 0);
  });
});

test("an archive is chosen, imported and rolled back by keys", async () => {
  const workspace = await Workspace.open();
  const archive = zip({ "Vault/Note.md": "see [[Other]]\n", "Vault/Other.md": "back to [[Note]]\n" });
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/import`);
    const field = page.getByLabel("Archive", { exact: true });
    const chooser = await eventually("a chooser of files", async () => {
      await tabTo(page, field);
      // Chromium sometimes does not count the key press as a user activation.
      const opened = page.waitForEvent("filechooser", { timeout: 2000 }).catch(() => null);
      await page.keyboard.press("Enter");
      return opened;
    });
    await chooser.setFiles({ name: "vault.zip", mimeType: "application/zip", buffer: archive });
    await press(page, button(page, "Upload and preview"));
    await page.getByRole("heading", { name: "vault.zip", level: 1 }).waitFor();
    await page.getByText("What will become of it").waitFor();
    await press(page, button(page, "Start"));
    await page.getByText("What became of it").waitFor();
    // A fresh visit, with all animations at rest.
    await open(page, page.url());
    await press(page, page.getByRole("button", { name: /^Roll back/ }).filter({ visible: true }));
    await page.getByRole("dialog").waitFor();
    await press(page, inDialog(page, "Roll back"));
    await page.locator("main").getByText("Rolled back", { exact: true }).filter({ visible: true }).first().waitFor();
    await eventually("the files are gone", async () => (await workspace.call("GET", "/api/v1/files")).length === 0);
  });
});

test("what an agent did is planned and taken back by keys, and the trash narrowed to what it deleted", async () => {
  const workspace = await Workspace.open();
  const call = await workspace.agent("Wild agent");
  const [gone, changed] = [await workspace.file("gone.md", "two\n"), await workspace.file("changed.md", "three\n")];
  const own = await workspace.file("own.md", "four\n");
  await workspace.call("DELETE", `/api/v1/files/${own.id}`);
  await call("DELETE", `/api/v1/files/${gone.id}`);
  await call("PATCH", `/api/v1/files/${changed.id}`, { content: "ruined\n" });
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/trash`);
    const trash = page.getByRole("table", { name: "In trash" });
    await trash.getByText("own.md").first().waitFor();
    await tabTo(page, page.getByLabel("Deleted by", { exact: true }));
    await page.keyboard.type("Wild");
    await press(page, button(page, "Show"));
    await page.waitForURL(/who=/);
    await trash.getByText("gone.md").first().waitFor();
    assert.equal(await trash.getByText("own.md").count(), 0);

    await open(page, `${workspace.at}/activity`);
    await tabTo(page, page.getByLabel("Who", { exact: true }));
    await page.keyboard.type("Wild");
    await press(page, button(page, "Show"));
    await page.waitForURL(/who=/);
    await press(page, link(page, /^Undo… all that/));
    await page.getByRole("table", { name: "Taken back" }).getByText("gone.md").first().waitFor();
    await press(page, button(page, "Undo"));
    await page.getByText(/Undone/).first().waitFor();
  });
  assert.equal((await workspace.read(gone.id)).content, "two\n");
  assert.equal((await workspace.read(changed.id)).content, "three\n");
});
