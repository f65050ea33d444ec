// What a person does without a mouse.
import assert from "node:assert/strict";

const MAX_TABS = 80;
/** How long the focus may take to arrive, in ms. */
const FOCUS_MS = 5000;

/** Presses Tab until the target has the focus, and asserts that the focus is visible. */
export async function tabTo(page, target) {
  for (let presses = 0; presses < MAX_TABS; presses += 1) {
    await page.keyboard.press("Tab");
    const isThere = await target.first().evaluate(element => element === document.activeElement).catch(() => false);
    if (!isThere) continue;
    const outline = await target.first().evaluate(element => getComputedStyle(element).outlineStyle);
    assert.notEqual(outline, "none", "the focus is not to be seen");
    return;
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** A visible button of that name. */
export const button = (page, name) => page.getByRole("button", { name, exact: true }).filter({ visible: true });
/** Waits until `of`, evaluated on the focused element, returns the wanted text. Chromium sets the focus of a new page
 * (`autofocus`, a fragment) when it paints, which may be after the load event. */
async function focusIs(page, wanted, of) {
  const isIt = found => (wanted instanceof RegExp ? wanted.test(found) : found === wanted);
  const until = Date.now() + FOCUS_MS;
  let found = await page.evaluate(of);
  while (!isIt(found) && Date.now() < until) {
    await page.waitForTimeout(50);
    found = await page.evaluate(of);
  }
  assert.ok(isIt(found), `the focus is on ${JSON.stringify(found)} instead of ${wanted}`);
}

/** Waits until the focus is on the element with that text. */
export const focusOn = (page, text) => focusIs(page, text, () => document.activeElement.textContent.trim());
/** Waits until the focus is on the element with that id. */
export const focusOnId = (page, id) => focusIs(page, id, () => document.activeElement.id);
/** Waits until the focus is in a field of that type. */
export const focusOnType = (page, type) => focusIs(page, type, () => document.activeElement.type ?? "");

/** Reaches the target by Tab and presses Enter. */
export async function press(page, target) {
  await tabTo(page, target);
  await page.keyboard.press("Enter");
}

/** Reaches the field by Tab and replaces its value. */
export async function type(page, field, text) {
  await tabTo(page, field);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}
