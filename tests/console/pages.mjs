// Every page and state, in every look: no axe violation, no overflow, and none of the events that fail a test. The markup is the
// same in every look, so those that differ only in colours are checked by the colour rules alone. The weight of a page is
// measured too: on the first load, and again after all looks.
import assert from "node:assert/strict";
import test from "node:test";
import { browse, COLOURS, concurrently, DESK, NARROW, overflow, PHONE, violations } from "./support/browser.mjs";
import { openView, seeded, views } from "./support/views.mjs";
import { cold, warm } from "./support/weight.mjs";

const LIGHT = { colorScheme: "light", forcedColors: "none" };
const LOOKS = [
  ["light", LIGHT, DESK, undefined],
  ["dark", { ...LIGHT, colorScheme: "dark" }, DESK, COLOURS],
  ["forced colours", { ...LIGHT, forcedColors: "active" }, DESK, COLOURS],
  ["light, on a phone", LIGHT, PHONE, undefined],
];

/** The faults of the current page, in each of the looks. */
async function faults(page, looks, report) {
  const found = [];
  if (await page.locator("h1").count() !== 1) found.push("not one h1");
  for (const [name, media, viewport, rules] of looks) {
    await page.emulateMedia(media);
    const cut = await overflow(page, viewport);
    const unsure = one => { if (name === "light") report.diagnostic(`undecided: ${one}`); };
    const wrong = await violations(page, { unsure, ...(rules && { rules }) });
    found.push(...[...cut, ...wrong].map(one => `${name}: ${one}`));
  }
  found.push(...(await overflow(page, NARROW)));
  return found;
}

/** Checks a page: its weight, if assets come from the binary, and all looks. */
async function checkPage(page, context, view, report) {
  if (process.env.CAIRN_CONSOLE_ASSETS) {
    await openView(page, view);
    return faults(page, LOOKS, report);
  }
  const first = await cold(page, context, view);
  const found = await faults(page, LOOKS, report);
  await page.setViewportSize(DESK);
  const again = await warm(page, context, view);
  report.diagnostic(`${view.name}: ${first.summary}, ${again.summary}`);
  return [...first.found, ...found, ...again.found];
}

/** Checks a state of a page, which shares the page's colours. */
async function checkState(page, view, report) {
  await openView(page, view);
  return faults(page, LOOKS.filter(([, , , rules]) => !rules), report);
}

test("pages", { concurrency: 2 }, async group => {
  const seed = await seeded();
  await concurrently(group, views(seed), view => [`${view.name} is sound${view.then ? "" : " and light"}`, report =>
    browse({ as: view.as }, async (page, context) => {
      const found = view.then ? await checkState(page, view, report) : await checkPage(page, context, view, report);
      assert.deepEqual(found, []);
    })]);
});
