// Journeys over files: creating, editing, moving, deleting and undo, versions, citations, search.
import assert from "node:assert/strict";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open } from "./support/browser.mjs";
import { Workspace } from "./support/server.mjs";

const visible = (page, name) => page.getByRole("textbox", { name, exact: true }).filter({ visible: true });

test("a file is made, written, read, moved, tagged and renamed", async () => {
  const workspace = await Workspace.open();
  await workspace.folder("Shelf");
  for (const viewport of [undefined, NARROW]) {
    const name = viewport ? "narrow.md" : "wide.md";
    await browse({ as: workspace.owner, viewport }, async page => {
      await open(page, `${workspace.at}/files`);
      await page.getByRole("button", { name: "New file" }).click();
      await visible(page, "Name").fill(name);
      await inForm(visible(page, "Name"), "Create file").click();
      await page.waitForURL(/\/edit$/);
      const text = page.getByLabel("Text");
      await text.fill("# Fresh\n\n- one");
      await text.press("End");
      await text.press("Enter");
      await text.pressSequentially("two");
      assert.equal(await text.inputValue(), "# Fresh\n\n- one\n- two");
      await page.getByRole("region", { name: "Preview" }).getByRole("listitem").filter({ hasText: "two" }).waitFor();
      await assertSound(page);
      await page.keyboard.press("Control+s");
      await page.getByText("Saved.").waitFor();
      await page.getByRole("heading", { name: "Fresh" }).waitFor();
      await assertSound(page);

      await page.getByRole("button", { name: "Move", exact: true }).click();
      const folder = page.getByRole("combobox", { name: "Folder" });
      await folder.selectOption({ label: "/Shelf" });
      await inForm(folder, "Move").click();
      await page.getByText(`/Shelf/${name}`).first().waitFor();
      await page.getByRole("button", { name: "Tags" }).click();
      await visible(page, "Tags").or(page.getByRole("textbox", { name: /^Tags/ }).filter({ visible: true })).first().fill("red, blue");
      await page.getByRole("button", { name: "Save tags" }).click();
      await page.getByText("blue", { exact: true }).first().waitFor();
      await page.getByRole("button", { name: "Rename", exact: true }).click();
      await visible(page, "Name").fill(`new ${name}`);
      await inForm(visible(page, "Name"), "Rename").click();
      await page.getByRole("heading", { level: 1, name: `new ${name}` }).waitFor();
      await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "Shelf" }).click();
      await page.getByRole("link", { name: `new ${name}` }).waitFor();
      await assertSound(page);
    });
  }
});

test("nothing that two tabs write is lost", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("shared.md", "one\n\ntwo\n\nthree\n");
  await browse({ as: workspace.owner }, async (page, context) => {
    const other = await context.newPage();
    for (const tab of [page, other]) await open(tab, `/file/${file.id}/edit`);
    await other.getByLabel("Text").fill("one\n\ntheirs\n\nthree\n");
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await other.getByText("Saved.").waitFor();
    await page.getByLabel("Text").fill("one\n\nmine\n\nthree\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Keep mine" }).waitFor();
    await page.getByRole("link", { name: "Keep theirs" }).waitFor();
    const shown = await page.getByRole("main").innerText();
    assert.ok(shown.includes("mine") && shown.includes("theirs"), shown);
    await assertSound(page);
    await page.getByRole("button", { name: "Edit both" }).click();
    const both = page.getByLabel("Text");
    const text = await both.inputValue();
    assert.ok(text.includes("mine") && text.includes("theirs"), text);
    await both.fill("one\n\nboth\n\nthree\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await workspace.read(file.id)).content, "one\n\nboth\n\nthree\n");

    await open(page, `/file/${file.id}/edit`);
    await workspace.write(file.id, "by an agent\n");
    await page.getByLabel("Text").fill("by a person\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await workspace.read(file.id)).content, "by a person\n");
  });
});

test("a draft outlives the session and a reload", async () => {
  const workspace = await Workspace.open();
  const person = await workspace.member("editor");
  const file = await workspace.file("draft.md", "begun\n");
  await browse({ as: person }, async (page, context) => {
    await open(page, `/file/${file.id}/edit`);
    await page.getByLabel("Text").fill("begun\nand written for an hour\n");
    await context.clearCookies();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.waitForURL(/sign-in/);
    await page.getByLabel("Email").fill(person.email);
    await page.getByLabel("Password").fill(person.password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    // A form that failed to arrive leads back to its page.
    await page.waitForURL(/\/edit$/);
    await page.getByText(/draft/i).first().waitFor();
    assert.equal(await page.getByLabel("Text").inputValue(), "begun\nand written for an hour\n");
    await assertSound(page);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    // A saved text leaves no draft.
    await workspace.write(file.id, "begun\n");
    await open(page, `/file/${file.id}/edit`);
    assert.equal(await page.getByLabel("Text").inputValue(), "begun\n");
  });
});

test("what was typed outlives a server that is away", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("away.md", "begun\n");
  await browse({ as: workspace.owner, mayFail: /net::ERR_INTERNET_DISCONNECTED/ }, async (page, context) => {
    await open(page, `/file/${file.id}/edit`);
    await page.getByLabel("Text").fill("begun\nand written in a tunnel\n");
    await context.setOffline(true);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.waitForURL(/^chrome-error/);
    await context.setOffline(false);
    await open(page, `/file/${file.id}/edit`);
    assert.equal(await page.getByLabel("Text").inputValue(), "begun\nand written in a tunnel\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await workspace.read(file.id)).content, "begun\nand written in a tunnel\n");
  });
});

test("lines are cited by their numbers, and the link is copied", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("lines.md", Array.from({ length: 12 }, (_, at) => `line ${at + 1}\n`).join(""));
  await browse({ as: workspace.owner, permissions: ["clipboard-read", "clipboard-write"] }, async page => {
    await open(page, `/file/${file.id}?view=source`);
    const number = { position: { x: 30, y: 8 } };
    await page.locator("#L4").click(number);
    await page.locator("#L6").click({ ...number, modifiers: ["Shift"] });
    assert.match(page.url(), /lines=4-6/);
    await page.getByRole("button", { name: "Copy link" }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, page.url());
    await open(page, copied.replace("view=source&", ""));
    const cited = page.locator("[aria-current=true]").filter({ hasText: /^line/ });
    assert.match((await cited.allInnerTexts()).join(" "), /line 4[^]*line 6/);
    await assertSound(page);
  });
});

test("what goes to trash comes back by Undo, one or many, and from Trash", async () => {
  const workspace = await Workspace.open();
  const names = ["a.md", "b.md", "c.md", "d.md"];
  const files = [];
  for (const name of names) files.push(await workspace.file(name, `${name}\n`));
  await browse({ as: workspace.owner }, async page => {
    await open(page, `/file/${files[0].id}`);
    await page.getByRole("button", { name: "Move to trash" }).click();
    await page.getByText("Moved to trash.").waitFor();
    assert.equal(await page.getByRole("link", { name: "a.md" }).count(), 0);
    await assertSound(page);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored.").waitFor();
    await open(page, `/file/${files[0].id}`);

    await page.goto(`${workspace.at}/files`);
    const box = name => page.getByRole("checkbox", { name: `Select ${name}` });
    await box("a.md").click();
    await box("c.md").click({ modifiers: ["Shift"] });
    assert.deepEqual(await Promise.all(names.map(name => box(name).isChecked())), [true, true, true, false]);
    await page.getByRole("button", { name: /selected to trash/ }).click();
    await page.getByText(/3 items moved to trash/).waitFor();
    assert.equal(await page.getByRole("link", { name: /^[abc]\.md$/ }).count(), 0);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored.").waitFor();
    await page.goto(`${workspace.at}/files`);
    assert.equal(await page.getByRole("link", { name: /^[abcd]\.md$/ }).count(), 4);

    await workspace.trash("file", files[3].id);
    await open(page, `/file/${files[3].id}`, 404);
    assert.match(await page.getByRole("main").innerText(), /d\.md/);
    await assertSound(page);
    await page.getByRole("button", { name: /^Restore/ }).click();
    await page.getByRole("heading", { level: 1, name: "d.md" }).waitFor();

    await workspace.trash("file", files[1].id);
    await open(page, `${workspace.at}/trash`);
    await page.getByRole("row", { name: /b\.md/ }).getByRole("button", { name: /^Restore/ }).click();
    await page.getByText("Restored.").waitFor();
    await workspace.trash("file", files[1].id);
    await page.reload();
    await page.getByRole("row", { name: /b\.md/ }).getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /for good/ }).click();
    await page.getByText("Deleted for good.").waitFor();
    await open(page, `/file/${files[1].id}`, 404);
  });
});

test("a folder goes for good only by its name", async () => {
  const workspace = await Workspace.open();
  const folder = await workspace.folder("Ledger");
  await workspace.file("in.md", "x", { folderId: folder.id });
  await workspace.trash("folder", folder.id);
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/trash`);
    const begin = () => page.getByRole("row", { name: /Ledger/ }).getByRole("button", { name: /^Delete/ }).click();
    await begin();
    await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Lodger");
    await page.getByRole("dialog").getByRole("button", { name: /for good/ }).click();
    await page.getByText(/typed as it stands/).first().waitFor();
    await assertSound(page);
    await begin();
    await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Ledger");
    await page.getByRole("dialog").getByRole("button", { name: /for good/ }).click();
    await page.getByText("Deleted for good.").waitFor();
  });
});

test("an earlier version is looked at and restored", async () => {
  const workspace = await Workspace.open();
  const file = await workspace.file("plan.md", "the first plan\n");
  await workspace.write(file.id, "the second plan\n");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `/file/${file.id}`);
    await page.getByRole("link", { name: "Changes" }).click();
    await page.getByRole("link", { name: "Version 1" }).click();
    await page.getByRole("link", { name: "What has changed since" }).click();
    const shown = await page.getByRole("main").innerText();
    assert.ok(/first/.test(shown) && /second/.test(shown), shown);
    await page.getByRole("button", { name: /^Restore/ }).click();
    await page.getByText("Restored.").waitFor();
    await page.getByText("the first plan").waitFor();
    assert.equal((await workspace.read(file.id)).content, "the first plan\n");
  });
});

test("a question leads to the lines that answer it", async () => {
  const workspace = await Workspace.open();
  const lines = Array.from({ length: 120 }, (_, at) => `Paragraph ${at} of filler about nothing.\n`);
  lines[90] = "The ferry to the lighthouse leaves at six.\n";
  const file = await workspace.file("ferry.md", lines.join("\n"));
  await workspace.searchable("lighthouse");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/search`);
    await page.getByLabel("Question").fill("when does the ferry to the lighthouse leave");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: /ferry\.md:/ }).first().click();
    await page.waitForURL(url => url.pathname === `/file/${file.id}`);
    const cited = page.locator("[aria-current=true]").filter({ hasText: "lighthouse" });
    await cited.first().waitFor();
    assert.ok(await cited.first().evaluate(element => {
      const ground = one => getComputedStyle(one).backgroundColor;
      const others = [...document.querySelectorAll("main p")].filter(one => /filler/.test(one.textContent) && !one.hasAttribute("aria-current"));
      return others.length === 0 || others.some(one => ground(one) !== ground(element));
    }));
    const first = page.url().match(/#(L\d+)$/)?.[1];
    assert.ok(first, page.url());
    assert.ok(await page.locator(`#${first}`).evaluate(element => {
      const box = element.getBoundingClientRect();
      return box.top >= 0 && box.top < innerHeight;
    }), "the cited lines are not in the window");
    await assertSound(page);
  });
});

test("files are put in by the form, and what is left out is named", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/files`);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByLabel("Files", { exact: true }).setInputFiles([
      { name: "good.md", mimeType: "text/markdown", buffer: Buffer.from("# good\n") },
      { name: "picture.png", mimeType: "image/png", buffer: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0xfe, 0x00]) },
    ]);
    await page.getByRole("button", { name: "Upload files" }).click();
    await page.getByRole("link", { name: "good.md" }).waitFor();
    assert.match(await page.getByRole("main").innerText(), /picture\.png/);
    await assertSound(page);
  });
});

test("many files are moved and tagged at once, and one Undo takes it back", async () => {
  const workspace = await Workspace.open();
  await workspace.folder("Shelf");
  for (const name of ["a.md", "b.md", "c.txt"]) await workspace.file(name, "x\n");
  const select = (page, name) => page.getByRole("checkbox", { name: `Select ${name}` });
  for (const options of [{}, { viewport: NARROW, javaScriptEnabled: false }]) {
    await browse({ as: workspace.owner, ...options }, async page => {
      await open(page, `${workspace.at}/files`);
      for (const name of ["a.md", "b.md"]) await select(page, name).check();
      await page.getByRole("combobox", { name: "Folder" }).filter({ visible: true }).selectOption({ label: "/Shelf" });
      await page.getByRole("button", { name: "Move selected", exact: true }).click();
      await page.getByText("2 items moved.").waitFor();
      assert.equal(await page.getByRole("link", { name: "a.md" }).count(), 0);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Undone.").waitFor();
      await page.getByRole("link", { name: "a.md" }).waitFor();

      await open(page, `${workspace.at}/files?q=.md`);
      await page.getByRole("checkbox", { name: "All 2 files that match" }).check();
      await page.getByRole("textbox", { name: /^Tag/ }).fill("red");
      await page.getByRole("button", { name: "Tag selected" }).click();
      await page.getByRole("heading", { level: 1, name: "Tag all that match" }).waitFor();
      await page.getByText("2 files would be tagged").waitFor();
      if (!("javaScriptEnabled" in options)) await assertSound(page);
      await page.getByRole("button", { name: "Tag 2 files" }).click();
      await page.getByText("The tags of 2 files are changed.").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Undone.").waitFor();
    });
  }
});

test("a passage is mended with a link by name, and the search is asked again", async () => {
  const workspace = await Workspace.open();
  await workspace.file("Handbook.md", "# Rules\n");
  const file = await workspace.file("lynx.md", "The lynx hides.\n");
  await workspace.searchable("lynx");
  await browse({ as: workspace.owner, permissions: ["clipboard-read", "clipboard-write"] }, async page => {
    await open(page, `${workspace.at}/search?q=lynx&strategy=keyword`);
    await page.getByText("Copy this search").click();
    await page.getByRole("button", { name: "Copy", exact: true }).first().click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl -sS .*search_context/);
    await assertSound(page);

    await page.getByRole("link", { name: /lynx\.md:/ }).first().click();
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    const text = page.getByLabel("Text", { exact: true });
    await text.fill("---\ntitle: A: B\n---\n");
    await page.getByText(/no valid YAML: line 2/).waitFor();
    await text.fill("The lynx sings. See ");
    await text.press("End");
    await text.pressSequentially("[[handb");
    const offered = page.getByRole("option", { name: /Handbook\.md/ });
    await offered.waitFor();
    assert.equal(await text.getAttribute("aria-activedescendant"), await offered.getAttribute("id"));
    await assertSound(page);
    await text.press("Escape");
    assert.equal(await offered.count(), 0);
    await text.fill("The lynx sings. See ");
    await text.press("End");
    await text.pressSequentially("[[handb");
    await offered.waitFor();
    await text.press("Enter");
    assert.equal(await text.inputValue(), "The lynx sings. See [[Handbook]]");
    await page.getByRole("button", { name: "Save and ask again" }).click();
    await page.waitForURL(/\/search\?q=lynx&strategy=keyword&after=/);
    await page.getByText("The lynx sings.").first().waitFor();
    // A saved text leaves no draft.
    await workspace.write(file.id, "begun\n");
    await open(page, `/file/${file.id}/edit`);
    assert.equal(await page.getByLabel("Text", { exact: true }).inputValue(), "begun\n");
  });
});
