// What a person does without a mouse.
import assert from "node:assert/strict";

const MOST_TABS = 80;

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
/** The text of what has the focus. */
export const focused = page => page.evaluate(() => document.activeElement.textContent.trim());

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
