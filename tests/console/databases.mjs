// Journeys over databases: fields, records, the grid with its filters, sorts, views and cells, conflicts, trash, export.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { assertSound, browse, inForm, NARROW, open } from "./support/browser.mjs";
import { focusOn } from "./support/keys.mjs";
import { Workspace } from "./support/server.mjs";
import { ALL_TYPES, Table } from "./support/tables.mjs";

const visible = (page, name) => page.getByRole("textbox", { name, exact: true }).filter({ visible: true });
const beside = page => page.getByRole("complementary");
const rows = page => page.getByRole("region", { name: "Records" }).locator("tbody tr");
const titles = async page => (await rows(page).getByRole("rowheader").allInnerTexts()).map(text => text.trim());

test("a database is made, gets fields, and a record with a value of each", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/databases`);
    await page.getByRole("button", { name: "New database" }).click();
    await visible(page, "Name").fill("Tasks");
    await inForm(visible(page, "Name"), "Create database").click();
    await page.waitForURL(/\/fields$/);
    for (const [name, type, options] of [["Points", "number"], ["Status", "select", "Open\nDone"], ["Due", "date"], ["Urgent", "boolean"], ["Note", "text"]]) {
      const field = visible(page, "Name").last();
      await field.fill(name);
      await page.getByLabel("Type", { exact: true }).selectOption(type);
      if (options) await page.getByLabel("Options of a select").fill(options);
      await page.getByRole("button", { name: "Add field" }).click();
      await page.getByRole("rowheader", { name }).waitFor();
    }
    await assertSound(page);
    await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "Tasks" }).click();
    await page.getByRole("link", { name: "New record" }).click();
    const form = beside(page);
    await form.getByLabel("Name", { exact: true }).fill("Write it down");
    await form.getByLabel("Points").fill("2.5");
    await form.getByLabel("Status").selectOption("Done");
    assert.equal(await form.getByLabel("Due").getAttribute("type"), "date");
    await form.getByLabel("Due").fill("2026-12-24");
    await form.getByLabel("Urgent").check();
    await form.getByRole("button", { name: "Create record" }).click();
    await page.getByText("Created.").waitFor();
    await beside(page).getByRole("heading", { name: "Write it down" }).waitFor();
    await assertSound(page);
    const row = rows(page).filter({ hasText: "Write it down" });
    for (const text of ["2.5", "Done", "2026"]) assert.ok((await row.innerText()).includes(text), text);

    // An edit beside the grid, and closing it: the focus returns to its row.
    await beside(page).getByLabel("Status").selectOption("Open");
    await beside(page).getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: /^Close/ }).click();
    await page.waitForURL(url => !url.searchParams.has("record"));
    await focusOn(page, "Write it down");
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await visible(page, "Name").fill("To do");
    await inForm(visible(page, "Name"), "Rename").click();
    await page.getByRole("heading", { level: 1, name: "To do" }).waitFor();
  });
});

test("a dropped table becomes a database, as it looks or as it is told", async () => {
  const workspace = await Workspace.open();
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${workspace.at}/databases`);
    await page.getByRole("link", { name: "New from CSV" }).click();
    const table = "Points,Task\n1,write\n2,read\n";
    const dropped = await page.evaluateHandle(text => {
      const all = new DataTransfer();
      all.items.add(new File([text], "May.csv", { type: "text/csv" }));
      return all;
    }, table);
    await page.locator("body").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByRole("heading", { name: "What the columns become" }).waitFor();
    await assertSound(page);
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "May");
    assert.equal(await page.getByLabel("Type of Points").inputValue(), "number");
    await page.getByLabel("Type of Points").selectOption("date");
    await page.getByLabel("Name of Points").fill("Due");
    await page.getByRole("button", { name: "Check again" }).click();
    await page.getByRole("heading", { name: "What cannot be taken" }).waitFor();
    assert.equal(await page.getByLabel("Name of Points").inputValue(), "Due");
    await page.getByLabel("Type of Points").selectOption("number");
    await page.getByRole("button", { name: "Check again" }).click();
    await page.getByRole("button", { name: "Create database with 2 records" }).click();
    await page.getByRole("heading", { level: 1, name: "May" }).waitFor();
    assert.deepEqual(await titles(page), ["write", "read"]);
    await assertSound(page);
  });
});

test("filters, sorts, views and pages stand in the address, and Back takes them away", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Numbers", ALL_TYPES);
  for (let at = 0; at < 60; at += 1) await table.add({ Name: `n${String(at).padStart(2, "0")}`, Points: at, Status: at % 2 ? "Open" : "Done" });
  await browse({ as: workspace.owner }, async page => {
    await open(page, table.at);
    assert.equal(await rows(page).count(), 50);
    await page.getByRole("navigation", { name: /^Pages/ }).getByRole("link", { name: "Next" }).click();
    await page.waitForURL(/page=2/);
    assert.equal(await rows(page).count(), 10);
    await open(page, table.at);
    await page.getByLabel("Filter by").selectOption({ label: "Points" });
    await page.getByLabel("Condition").selectOption({ label: "is at least" });
    await page.getByLabel("Value").fill("55");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("status").filter({ hasText: "5 records found" }).waitFor();
    const filtered = page.url();
    await page.getByRole("columnheader", { name: "Points" }).getByRole("link").click();
    await page.getByRole("columnheader", { name: "Points" }).getByRole("link").click();
    await page.waitForURL(/desc/);
    assert.equal(await page.locator("[aria-sort]").count(), 1);
    assert.equal(await page.getByRole("columnheader", { name: "Points" }).getAttribute("aria-sort"), "descending");
    assert.deepEqual(await titles(page), ["n59", "n58", "n57", "n56", "n55"]);
    await assertSound(page);
    await page.getByRole("button", { name: "Save as view" }).click();
    await visible(page, "Name").fill("Large ones");
    await inForm(visible(page, "Name"), "Save view").click();
    await page.getByText("Created.").waitFor();
    const views = page.getByRole("navigation", { name: "Views" });
    assert.equal(await views.getByRole("link", { name: "Large ones" }).getAttribute("aria-current"), "page");
    assert.deepEqual(await titles(page), ["n59", "n58", "n57", "n56", "n55"]);
    await open(page, filtered);
    await page.getByRole("link", { name: /^Remove the filter/ }).click();
    await page.getByRole("status").filter({ hasText: "60 records" }).waitFor();
    await page.goBack();
    await page.getByRole("status").filter({ hasText: "5 records found" }).waitFor();
    await views.getByRole("link", { name: "Large ones" }).click();
    await page.getByRole("button", { name: /^Delete view/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete view" }).click();
    await page.getByText(/Deleted/).waitFor();
    assert.equal(await views.getByRole("link", { name: "Large ones" }).count(), 0);
    const [exported] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export CSV" }).click()]);
    assert.equal(readFileSync(await exported.path(), "utf8").trim().split("\n").length, 61);
  });
});

test("a cell is edited in place, by double click and by Enter, and keeps what is refused", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Cells", ALL_TYPES);
  const record = await table.add({ Name: "one", Points: 1, Status: "Open", Link: "https://example.com/" });
  await browse({ as: workspace.owner }, async page => {
    await open(page, table.at);
    const cell = name => page.locator(`[data-record="${record}"]`).locator("td").nth(Object.keys(table.fields).filter(one => one !== "Name").indexOf(name) + 1);
    await cell("Points").dblclick();
    const points = page.getByRole("spinbutton", { name: "Points" });
    await points.fill("42");
    await points.press("Enter");
    await page.getByRole("cell", { name: "42", exact: true }).waitFor();
    assert.equal((await table.record(record)).of.Points, 42);
    assert.ok(!page.url().includes("cell="));
    await assertSound(page);

    // A rejected value stays in the cell with its error; Esc restores the old value.
    await cell("Link").press("Enter");
    const link = page.getByRole("textbox", { name: "Link" });
    await link.evaluate(field => { field.form.noValidate = true; });
    await link.fill("nowhere");
    await link.press("Enter");
    await page.getByRole("alert").first().waitFor();
    assert.equal(await link.inputValue(), "nowhere");
    await assertSound(page);
    await link.press("Escape");
    await page.getByRole("link", { name: "https://example.com/" }).waitFor();
    assert.equal((await table.record(record)).of.Link, "https://example.com/");

    // A concurrent edit got there first.
    await cell("Points").dblclick();
    await points.fill("43");
    await table.change(record, { Points: 7 });
    await points.press("Enter");
    await page.getByRole("button", { name: "Keep mine" }).waitFor();
    await page.getByRole("alert").filter({ hasText: "7" }).first().waitFor();
    assert.equal(await points.inputValue(), "43");
    await assertSound(page);
    await page.getByRole("button", { name: "Keep mine" }).click();
    await page.getByRole("cell", { name: "43", exact: true }).waitFor();
    assert.equal((await table.record(record)).of.Points, 43);
  });
});

test("two tabs that change one record lose nothing", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Shared", ALL_TYPES);
  const record = await table.add({ Name: "shared", Note: "begun" });
  const at = `${table.at}?record=${record}`;
  await browse({ as: workspace.owner }, async (page, context) => {
    const other = await context.newPage();
    for (const tab of [page, other]) await open(tab, at);
    await beside(other).getByLabel("Note").fill("theirs");
    await beside(other).getByRole("button", { name: "Save", exact: true }).click();
    await other.getByText("Saved.").waitFor();
    await beside(page).getByLabel("Note").fill("mine");
    await beside(page).getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Keep mine" }).waitFor();
    await page.getByRole("link", { name: "Keep theirs" }).waitFor();
    const shown = await page.getByRole("main").innerText();
    assert.ok(shown.includes("mine") && shown.includes("theirs"), shown);
    await assertSound(page);
    await page.getByRole("button", { name: "Edit both" }).click();
    await beside(page).getByLabel("Note").fill("both");
    await beside(page).getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await table.record(record)).of.Note, "both");
    // A form does not overwrite other fields that the other tab changed.
    await table.change(record, { Points: 5 });
    await open(page, at);
    await beside(page).getByLabel("Note").fill("again");
    await beside(page).getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.deepEqual([(await table.record(record)).of.Note, (await table.record(record)).of.Points], ["again", 5]);
  });
});

test("records have versions, a page and backlinks, go to trash together and come back at once", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Things", [["Points", "number"]]);
  await workspace.call("POST", `${table.api}/fields`, { name: "After", type: "relation", config: { relationDatabaseId: table.id } });
  await table.read();
  const ids = [];
  for (const name of ["a", "b", "c"]) ids.push(await table.add({ Name: name, Points: 1 }));
  await table.change(ids[1], { After: ids[0] });
  await table.change(ids[0], { Points: 2 });
  await browse({ as: workspace.owner }, async page => {
    await open(page, `${table.at}?record=${ids[0]}`);
    await beside(page).getByRole("link", { name: "Versions" }).click();
    await beside(page).getByRole("button", { name: "Restore version 1" }).click();
    await page.getByText("Restored.").waitFor();
    assert.equal((await table.record(ids[0])).of.Points, 1);
    await beside(page).getByRole("link", { name: "Backlinks" }).click();
    await beside(page).getByRole("link", { name: "b", exact: true }).waitFor();
    await assertSound(page);
    await beside(page).getByRole("link", { name: "Fields" }).click();
    await beside(page).getByRole("button", { name: "Add a page" }).click();
    await page.waitForURL(/\/edit$/);
    await page.getByLabel("Text").fill("# What it is\n\nA *thing*.\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    await open(page, `${table.at}?record=${ids[0]}`);
    await beside(page).getByRole("heading", { name: "What it is" }).waitFor();
    await assertSound(page);

    await open(page, table.at);
    const box = name => page.getByRole("checkbox", { name: `Select ${name}` });
    await box("a").click();
    await box("c").click({ modifiers: ["Shift"] });
    await page.getByRole("button", { name: /selected to trash/ }).click();
    await page.getByText(/3 items moved to trash/).waitFor();
    assert.equal(await rows(page).count(), 0);
    await assertSound(page);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Restored.").waitFor();
    await open(page, table.at);
    assert.equal(await rows(page).count(), 3);
    await open(page, `${table.at}?record=${ids[2]}`);
    await beside(page).getByRole("button", { name: /^Move to trash/ }).click();
    await page.getByText("Moved to trash.").waitFor();
    await open(page, `${table.at}?record=${ids[2]}`, 404);
    await page.getByRole("button", { name: /^Restore/ }).click();
    await page.getByText("Restored.").waitFor();
  });
});

test("on a phone a record takes the whole width, and is saved", async () => {
  const workspace = await Workspace.open();
  const table = await Table.make(workspace, "Pocket", ALL_TYPES);
  const record = await table.add({ Name: "one", Status: "Open" });
  await browse({ as: workspace.owner, viewport: NARROW }, async page => {
    await open(page, table.at);
    await page.getByRole("link", { name: "one", exact: true }).click();
    await page.waitForURL(/record=/);
    const width = await beside(page).evaluate(element => element.getBoundingClientRect().width);
    assert.ok(width > 240, `${width} px`);
    await beside(page).getByLabel("Status").selectOption("In review");
    await beside(page).getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await table.record(record)).of.Status, "In review");
    await assertSound(page);
    await page.getByRole("link", { name: /^Close/ }).click();
    await page.getByRole("link", { name: "one", exact: true }).waitFor();
    await assertSound(page);
  });
});
