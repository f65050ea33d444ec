// Journeys about external content: connecting a source, importing an archive, syncing a directory. Each with the mouse, in a
// narrow window, and without a script.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open } from "./support/browser.mjs";
import { eventually, sourceRoot, unique, Workspace } from "./support/server.mjs";
import { zip } from "./support/zip.mjs";

const MODES = [["with the mouse", {}], ["in a narrow window", { viewport: NARROW }], ["without a script", { javaScriptEnabled: false }]];

/** Waits until the page shows that text: live where it runs scripts, else by reloading. */
async function waitForText(page, way, words) {
  const text = page.locator("main").getByText(words).filter({ visible: true }).first();
  if (way.javaScriptEnabled !== false) return text.waitFor();
  return eventually(`${words}`, async () => {
    // The form's navigation may still be in progress: then the reload fails, and the next try succeeds.
    await page.reload().catch(() => undefined);
    return text.isVisible();
  });
}

for (const [how, way] of MODES) {
  test(`a folder is connected, read, found and disconnected ${how}`, async () => {
    const workspace = await Workspace.open();
    const folder = `${sourceRoot}/${unique("manual")}`;
    mkdirSync(folder);
    writeFileSync(`${folder}/valve.md`, "# Valve\n\nThe bypass valve is opened by the green lever.\n");
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/sources`);
      await page.getByRole("link", { name: "Connect a source" }).click();
      await page.getByRole("link", { name: "Folder", exact: true }).click();
      await page.getByRole("heading", { name: "What it costs" }).waitFor();
      await page.getByLabel("Name", { exact: true }).fill("Manual");
      await page.getByLabel("Path").fill("/nowhere");
      await page.getByRole("button", { name: "Test", exact: true }).click();
      await page.getByRole("alert").or(page.getByText("It does not work")).first().waitFor();
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Manual");
      await page.getByLabel("Path").fill(folder);
      await page.getByRole("button", { name: "Test", exact: true }).click();
      await page.getByText("It works").waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.getByRole("heading", { name: "Manual", level: 1 }).waitFor();
      await waitForText(page, way, "Ready");
      await waitForText(page, way, /1 document\b/);
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("link", { name: "1 document" }).click();
      await page.getByRole("link", { name: /valve/i }).first().click();
      await page.getByText("green lever").waitFor();
      await open(page, `${workspace.at}/search?q=bypass+valve`);
      await page.getByLabel("Source", { exact: true }).selectOption({ label: "Manual" });
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByRole("link", { name: /valve/ }).first().waitFor();
      await open(page, `${workspace.at}/sources`);
      await page.getByRole("link", { name: "Manual" }).click();
      await page.getByRole("button", { name: /^Disconnect/ }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
      await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor();
      assert.equal(await page.getByRole("link", { name: "Manual" }).count(), 0);
    });
  });

  test(`an archive is looked at, imported and rolled back ${how}`, async () => {
    const workspace = await Workspace.open();
    const archive = zip({ "Vault/Note.md": "see [[Other]]\n", "Vault/deep/Other.md": "back to [[Note]] and [[Nowhere]]\n" });
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/import`);
      const field = page.getByLabel("Archive", { exact: true });
      if (way.javaScriptEnabled === false) {
        await field.setInputFiles({ name: "vault.zip", mimeType: "application/zip", buffer: archive });
      } else {
        const dropped = await page.evaluateHandle(bytes => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([Uint8Array.from(bytes)], "vault.zip", { type: "application/zip" }));
          return transfer;
        }, [...archive]);
        await page.locator("body").dispatchEvent("drop", { dataTransfer: dropped });
      }
      await inForm(field, "Upload and preview").click();
      await page.getByRole("heading", { name: "vault.zip", level: 1 }).waitFor();
      await waitForText(page, way, "What will become of it");
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("button", { name: "Start", exact: true }).click();
      await waitForText(page, way, "What became of it");
      await page.getByRole("link", { name: "Open the folder" }).click();
      await page.getByRole("link", { name: "Note.md" }).waitFor();
      await open(page, `${workspace.at}/import`);
      await page.getByRole("link", { name: "vault.zip" }).click();
      await page.getByRole("button", { name: /^Roll back/ }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
      await waitForText(page, way, "Rolled back");
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await eventually("the files are gone", async () => (await workspace.call("GET", "/api/v1/files")).length === 0);
    });
  });

  test(`a sync is looked at, started and rolled back ${how}`, async () => {
    const workspace = await Workspace.open();
    const manifest = { name: "docs", documents: [{ path: "a.md", content: "# A\n" }, { path: "b.md", content: "# B\n" }] };
    await workspace.call("POST", "/api/v1/sync/preview", { manifest });
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/sync`);
      await page.getByRole("link", { name: "docs" }).first().click();
      await page.getByRole("button", { name: "Start", exact: true }).waitFor();
      await page.getByRole("button", { name: "Start", exact: true }).click();
      await waitForText(page, way, "Completed");
      await page.getByRole("button", { name: /^Roll back/ }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
      await waitForText(page, way, "Rolled back");
      if (way.javaScriptEnabled !== false) await assertSound(page);
    });
  });

  test(`a webhook is made, tried, changed, given another secret and deleted ${how}`, async () => {
    const workspace = await Workspace.open();
    await browse({ as: workspace.owner, ...way }, async page => {
      const secret = () => page.getByRole("textbox", { name: "Secret" }).inputValue();
      await open(page, `${workspace.at}/webhooks`);
      await page.getByRole("link", { name: "New webhook" }).click();
      await page.getByLabel("Name").fill("Mirror");
      await page.getByLabel("Address").fill("https://hooks.invalid/changes");
      await page.getByLabel("Records", { exact: true }).check();
      await page.getByRole("button", { name: "Make webhook" }).click();
      const first = await secret();
      assert.match(first, /^whsec_/);
      await page.reload();
      await page.getByText("sent before").waitFor();
      assert.ok(!(await page.content()).includes(first));
      await open(page, `${workspace.at}/webhooks`);
      await page.getByRole("link", { name: "Mirror" }).click();
      await page.getByRole("button", { name: "Send a ping" }).click();
      await page.getByText("Not arrived").waitFor();
      await page.getByRole("link", { name: "Change", exact: true }).click();
      await page.getByLabel("Name").fill("Search mirror");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: "Search mirror", level: 1 }).waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("button", { name: "New secret" }).first().click();
      await page.getByRole("dialog").getByRole("button", { name: "New secret" }).click();
      assert.notEqual(await secret(), first);
      await page.getByRole("link", { name: "Done" }).click();
      await page.getByRole("button", { name: /^Delete/ }).first().click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
      assert.equal(await page.getByRole("link", { name: "Search mirror" }).count(), 0);
    });
  });
}
