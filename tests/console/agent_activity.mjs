// Journeys about what agents did: their questions and results, gaps that become files, the reach of a token, why a file is not
// found, what an edit breaks, and undoing what an agent did.
import assert from "node:assert/strict";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open } from "./support/browser.mjs";
import { eventually, Workspace } from "./support/server.mjs";

const MODES = [["with the mouse", {}], ["in a narrow window", { viewport: NARROW }], ["without a script", { javaScriptEnabled: false }]];
const QUESTION = "when does the ferry to the lighthouse leave";
const GAP = "what does the ticket of the ferry cost";

for (const [how, way] of MODES) {
  test(`all that an agent did is taken back, and what was edited since is left alone ${how}`, async () => {
    const workspace = await Workspace.open();
    const call = await workspace.agent("Wild agent");
    const [kept, gone, changed] = [await workspace.file("kept.md", "one\n"), await workspace.file("gone.md", "two\n"), await workspace.file("changed.md", "three\n")];
    await call("DELETE", `/api/v1/files/${gone.id}`);
    await call("PATCH", `/api/v1/files/${changed.id}`, { content: "ruined\n" });
    await call("PATCH", `/api/v1/files/${kept.id}`, { content: "ruined\n" });
    await workspace.write(kept.id, "mended by a person\n");
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/activity`);
      await page.getByLabel("Who", { exact: true }).selectOption({ label: "Wild agent (token)" });
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.getByRole("link", { name: /^Undo… all that/ }).click();
      const planned = page.getByRole("table", { name: "Taken back" });
      await planned.getByText("gone.md").first().waitFor();
      assert.equal(await planned.getByText("kept.md").count(), 0);
      await page.getByRole("table", { name: "Left alone" }).getByText("kept.md").first().waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("button", { name: "Undo", exact: true }).click();
      await page.getByText(/Undone/).first().waitFor();
      await page.getByText(/undid a change/).first().waitFor();
    });
    assert.equal((await workspace.read(gone.id)).content, "two\n");
    assert.equal((await workspace.read(changed.id)).content, "three\n");
    assert.equal((await workspace.read(kept.id)).content, "mended by a person\n");
  });

  test(`a question is replayed and asked again, and its gap becomes a file ${how}`, async () => {
    const workspace = await Workspace.open();
    const ferry = await workspace.file("ferry.md", "# Ferry\n\nThe ferry to the lighthouse leaves at six.\n");
    await workspace.searchable("lighthouse");
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/questions`);
      await page.getByText(/question log is off/i).waitFor();
      await open(page, `${workspace.at}/settings`);
      await page.getByLabel("Question log").selectOption("7");
      await inForm(page.getByLabel("Question log"), "Save").click();
      await page.getByText("Saved.").waitFor();
      await eventually("both questions in the log", async () => {
        await workspace.call("POST", "/api/v1/search_context", { query: QUESTION });
        await workspace.call("POST", "/api/v1/search_context", { query: `${GAP} -lighthouse` });
        const listed = await workspace.owner.call("GET", `/api/workspaces/${workspace.id}/questions`);
        return listed.length > 1;
      });
      await open(page, `${workspace.at}/questions`);
      await page.getByRole("link", { name: QUESTION }).first().click();
      await page.getByRole("link", { name: /ferry\.md/ }).first().waitFor();
      await page.getByRole("link", { name: "Ask again now" }).or(page.getByRole("button", { name: "Ask again now" })).first().click();
      await page.getByText("The same passages in the same order.").waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("link", { name: /ferry\.md/ }).first().click();
      await page.locator("[data-cited]").first().waitFor();
      assert.equal(new URL(page.url()).pathname, `/file/${ferry.id}`);

      await open(page, `${workspace.at}/questions?view=gaps`);
      await page.getByRole("link", { name: /^Write the file/ }).or(page.getByRole("button", { name: /^Write the file/ })).first().click();
      assert.match(await page.getByLabel("Text").inputValue(), /ticket of the ferry/);
      await page.getByLabel("Text").fill(`# Tickets\n\n## ${GAP}\n\nThe ticket costs four.\n`);
      await page.getByRole("button", { name: "Save and ask again" }).click();
      await page.getByRole("table", { name: "Now and then" }).getByText("New", { exact: true }).first().waitFor();
      // The log is written asynchronously.
      await eventually("the gap is closed", async () => {
        await open(page, `${workspace.at}/questions?view=gaps`);
        return page.getByText("Every question of late found something good.").isVisible();
      });
    });
  });

  test(`why a file is not found is told in its checks ${how}`, async () => {
    const workspace = await Workspace.open();
    await workspace.file("release.md", "# Release\n\nWe ship on Monday.\n");
    await workspace.searchable("ship");
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/search`);
      await page.getByRole("searchbox", { name: "Question" }).fill("when do we ship -monday");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.getByText("Nothing was found.").waitFor();
      await page.getByLabel("File", { exact: true }).fill("release");
      await page.getByRole("button", { name: "Why is it not found?" }).click();
      await page.getByRole("link", { name: /release\.md/ }).click();
      await page.getByText(/left out by -monday/).first().waitFor();
      assert.equal(await page.getByLabel("File", { exact: true }).inputValue(), "/release.md");
      await page.getByRole("button", { name: "Look" }).click();
      await page.getByText(/left out by -monday/).first().waitFor();
      for (const word of [/trash/i, /index/i, /rank/i]) assert.ok(await page.locator("main li").filter({ hasText: word }).count());
      if (way.javaScriptEnabled !== false) await assertSound(page);
    });
  });

  test(`what a token reaches is told before it is made, and pages are seen with its eyes ${how}`, async () => {
    const workspace = await Workspace.open();
    const [plans, money] = [await workspace.folder("Plans"), await workspace.folder("Finance")];
    const deep = await workspace.folder("Deep", plans.id);
    for (const folder of [plans, deep]) await workspace.file(`of ${folder.id}.md`, "x", { folderId: folder.id });
    await workspace.file("salaries.md", "x", { folderId: money.id });
    await browse({ as: workspace.owner, ...way }, async page => {
      await open(page, `${workspace.at}/connect`);
      await page.getByRole("link", { name: "a token for Claude Code" }).click();
      assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Claude Code");
      await page.getByLabel("/Plans", { exact: true }).check();
      await page.getByRole("button", { name: "What it reaches" }).click();
      await page.getByText(/2 files in 2 folders/).waitFor();
      await page.getByText(/cannot see Finance/).waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("button", { name: "Create token" }).click();
      const secret = await page.getByRole("textbox", { name: "Token" }).inputValue();
      await page.getByText("As clients take it").click();
      await page.getByText(`Authorization: Bearer ${secret}`).first().waitFor();
      if (way.javaScriptEnabled !== false) await assertSound(page);
      await page.getByRole("link", { name: "Done" }).click();
      await page.getByRole("link", { name: "Claude Code" }).click();
      await page.getByRole("link", { name: "files", exact: true }).click();
      await page.getByText(/You see what Claude Code sees/).waitFor();
      assert.equal(await page.getByRole("link", { name: /Finance/ }).count(), 0);
      await page.getByRole("link", { name: "See as yourself" }).click();
      await page.getByRole("link", { name: /^Finance/ }).first().waitFor();
    });
  });
}

test("an edit that loses a golden question says so before it is saved", async () => {
  const workspace = await Workspace.open();
  const ferry = await workspace.file("ferry.md", "# Ferry\n\nThe ferry to the lighthouse leaves at six.\n");
  await workspace.searchable("lighthouse");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/search?q=${encodeURIComponent(QUESTION)}`);
    await page.getByRole("button", { name: "Pin as golden question" }).first().click();
    await page.getByText("1 of 1 golden question finds what it must.").waitFor();
    await open(page, `/file/${ferry.id}/edit`);
    await page.getByLabel("Text").fill("# Boats\n\nNothing sails any more.\n");
    await page.getByRole("button", { name: "Check golden questions" }).click();
    await page.getByText(/1 of 1 golden question loses/).waitFor();
    await assertSound(page);
    assert.match((await workspace.read(ferry.id)).content, /lighthouse/, "a check saves nothing");
  });
});

test("a file tells what links to it, and how often searches returned it", async () => {
  const workspace = await Workspace.open();
  const book = await workspace.file("Hand book.md", "# Hand book\n\nEverything about walruses.\n");
  const other = await workspace.file("notes.md", "# Notes\n\nsee [[hand book|the book]]\n");
  await workspace.file("more.md", "as [written](Hand%20book.md) there\n");
  await workspace.searchable("walruses");
  await browse({ as: workspace.owner }, async page => {
    await open(page, `/file/${book.id}?view=uses`);
    await page.getByRole("link", { name: /more\.md/ }).first().waitFor();
    await page.getByRole("link", { name: /notes\.md/ }).first().click();
    assert.equal(new URL(page.url()).pathname, `/file/${other.id}`);
    await page.locator("[data-cited]").getByText("the book").waitFor();
    await eventually("the search is counted", async () => {
      await open(page, `/file/${book.id}?view=uses`);
      return page.getByText(/Searches returned it/).isVisible();
    });
    await assertSound(page);
  });
});
