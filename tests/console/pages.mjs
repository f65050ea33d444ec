// Every page and state, in every look: axe finds nothing, nothing is cut, and nothing happens that must not. The markup is the
// same in every look, so those that differ in colours alone are held to the rules of colours.
import assert from "node:assert/strict";
import test from "node:test";
import { atOnce, browse, COLOURS, DESK, NARROW, overflow, PHONE, violations } from "./support/browser.mjs";
import { look, seeded, views } from "./support/views.mjs";

const LIGHT = { colorScheme: "light", forcedColors: "none" };
const LOOKS = [
  ["light", LIGHT, DESK, undefined],
  ["dark", { ...LIGHT, colorScheme: "dark" }, DESK, COLOURS],
  ["forced colours", { ...LIGHT, forcedColors: "active" }, DESK, COLOURS],
  ["light, on a phone", LIGHT, PHONE, undefined],
];

test("pages", { concurrency: 2 }, async group => {
  const seed = await seeded();
  await atOnce(group, views(seed), view => [`${view.name} is sound`, report =>
    browse({ as: view.as }, async page => {
      await look(page, view);
      const found = [];
      if (await page.locator("h1").count() !== 1) found.push("not one h1");
      // A state of a page has the colours of the page.
      for (const [name, media, viewport, rules] of LOOKS.filter(([, , , rules]) => !(rules && view.then))) {
        await page.emulateMedia(media);
        const cut = await overflow(page, viewport);
        const unsure = one => { if (name === "light") report.diagnostic(`undecided: ${one}`); };
        const wrong = await violations(page, { unsure, ...(rules && { rules }) });
        found.push(...[...cut, ...wrong].map(one => `${name}: ${one}`));
      }
      found.push(...(await overflow(page, NARROW)));
      assert.deepEqual(found, []);
    })]);
});
