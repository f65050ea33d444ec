// What a person does without a mouse.
import assert from "node:assert/strict";

const MOST_TABS = 80;
/** How long the focus may take to come, in ms. */
const FOCUS_MS = 5000;

/** Presses Tab until that is in focus, and sees that the focus shows. */
export async function tabTo(page, target) {
  for (let presses = 0; presses < MOST_TABS; presses += 1) {
    await page.keyboard.press("Tab");
    const isThere = await target.first().evaluate(element => element === document.activeElement).catch(() => false);
    if (!isThere) continue;
    const outline = await target.first().evaluate(element => getComputedStyle(element).outlineStyle);
    assert.notEqual(outline, "none", "the focus is not to be seen");
    return;
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** A button of that name that is to be seen. */
export const button = (page, name) => page.getByRole("button", { name, exact: true }).filter({ visible: true });
/** Waits until what has the focus is so: `of` is asked of the element, and answers a text. Chromium gives the focus of a new page
 * (`autofocus`, a fragment) when it draws it, which may be after the page was loaded. */
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

/** Waits until the focus is on what has that text. */
export const focusOn = (page, text) => focusIs(page, text, () => document.activeElement.textContent.trim());
/** Waits until the focus is on the element of that id. */
export const focusOnId = (page, id) => focusIs(page, id, () => document.activeElement.id);
/** Waits until the focus is in a field of that type. */
export const focusOnType = (page, type) => focusIs(page, type, () => document.activeElement.type ?? "");

/** Goes to that by Tab and presses Enter. */
export async function press(page, target) {
  await tabTo(page, target);
  await page.keyboard.press("Enter");
}

/** Goes to that field by Tab and types in place of what it holds. */
export async function type(page, field, text) {
  await tabTo(page, field);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}
