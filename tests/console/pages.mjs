// Every page and state, in every look: axe finds nothing, nothing is cut, and nothing happens that must not. The markup is the
// same in every look, so those that differ in colours alone are held to the rules of colours. A page is also weighed: as it is
// loaded for the first time, and again when all of it was looked at.
import assert from "node:assert/strict";
import test from "node:test";
import { atOnce, browse, COLOURS, DESK, NARROW, overflow, PHONE, violations } from "./support/browser.mjs";
import { look, seeded, views } from "./support/views.mjs";
import { cold, warm } from "./support/weight.mjs";

const LIGHT = { colorScheme: "light", forcedColors: "none" };
const LOOKS = [
  ["light", LIGHT, DESK, undefined],
  ["dark", { ...LIGHT, colorScheme: "dark" }, DESK, COLOURS],
  ["forced colours", { ...LIGHT, forcedColors: "active" }, DESK, COLOURS],
  ["light, on a phone", LIGHT, PHONE, undefined],
];

/** What is wrong with the page as it stands, in each of the looks. */
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

/** Of a page: its weight, where it is that of the binary, and all looks. */
async function ofPage(page, context, view, report) {
  if (process.env.CAIRN_CONSOLE_ASSETS) {
    await look(page, view);
    return faults(page, LOOKS, report);
  }
  const first = await cold(page, context, view);
  const found = await faults(page, LOOKS, report);
  await page.setViewportSize(DESK);
  const again = await warm(page, context, view);
  report.diagnostic(`${view.name}: ${first.told}, ${again.told}`);
  return [...first.found, ...found, ...again.found];
}

/** Of a state of a page, which has the colours of the page. */
async function ofState(page, view, report) {
  await look(page, view);
  return faults(page, LOOKS.filter(([, , , rules]) => !rules), report);
}

test("pages", { concurrency: 2 }, async group => {
  const seed = await seeded();
  await atOnce(group, views(seed), view => [`${view.name} is sound${view.then ? "" : " and light"}`, report =>
    browse({ as: view.as }, async (page, context) => {
      const found = view.then ? await ofState(page, view, report) : await ofPage(page, context, view, report);
      assert.deepEqual(found, []);
    })]);
});
