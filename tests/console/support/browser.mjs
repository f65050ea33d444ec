// Chromium, and the events in it that fail a test.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { base, npm } from "./server.mjs";

const require = createRequire(`${npm}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const ALL_RULES = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] };
/** The rules whose result depends on the look. */
export const COLOURS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

// As root, as in CI, Chromium cannot use its sandbox.
const launch = () => chromium.launch({
  executablePath: process.env.CAIRN_CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** The browser of this process, launched by its first test. */
let browser;

export const quit = async () => (await browser)?.close();

export const DESK = { width: 1280, height: 900 };
export const PHONE = { width: 360, height: 740 };
export const NARROW = { width: 320, height: 640 };

/** Collects everything that a page must not do, as it happens: the returned list grows. */
function watch(context, elsewhere, mayFail) {
  const found = [];
  const documents = new Set();
  context.on("request", request => {
    const url = request.url();
    if (request.isNavigationRequest()) documents.add(url);
    if (!url.startsWith(`${base}/`) && !(elsewhere && url.startsWith(elsewhere)) && !/^(data|blob|about):/.test(url)) found.push(`a request elsewhere: ${url}`);
  });
  context.on("response", answer => {
    if (answer.status() >= 500) found.push(`${answer.status()}: ${answer.url()}`);
  });
  context.on("console", message => {
    if (message.type() !== "error") return;
    // Chromium logs this for each document with such a status, which may be the expected response.
    const isStatus = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
    if (mayFail?.test(message.text())) return;
    if (isStatus && documents.has(message.location().url)) return;
    found.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("weberror", error => found.push(`page error: ${error.error()}`));
  context.on("dialog", dialog => {
    found.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  return found;
}

/** With CAIRN_CONSOLE_ASSETS, style and modules come from that folder, so that a change is visible without a build. */
async function withAssets(context) {
  const folder = process.env.CAIRN_CONSOLE_ASSETS;
  if (!folder) return;
  const all = (name, wrapped) => readdirSync(`${folder}/${name}`).sort().map(file => wrapped(readFileSync(`${folder}/${name}/${file}`, "utf8"))).join("");
  const texts = { "app.css": () => all("style", text => text), "app.js": () => all("modules", text => `{\n${text}}\n`) };
  await context.route(/\/console\/[a-z]+-[0-9a-f]+\.(css|js)$/, route => {
    const name = new URL(route.request().url()).pathname.replace("/console/", "").replace(/-[0-9a-f]+\./, ".");
    const file = `${folder}/${name}`;
    const body = texts[name]?.() ?? (existsSync(file) ? readFileSync(file, "utf8") : undefined);
    if (body === undefined) return route.continue();
    return route.fulfill({ contentType: name.endsWith("css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8", body });
  });
}

/** Runs the steps in a browser with that person's session (anonymous without one), and fails on anything that a page must not
 * do. Requests to another host must begin with `elsewhere`, such as an app's own URL, and `mayFail` matches permitted console
 * errors. */
export async function browse({ as, viewport = DESK, elsewhere, mayFail, ...options } = {}, steps) {
  // A routed stylesheet is missing when a view transition begins.
  const motion = process.env.CAIRN_CONSOLE_ASSETS ? { reducedMotion: "reduce" } : {};
  browser ??= launch();
  const context = await (await browser).newContext({ ...motion, baseURL: base, viewport, locale: "en-GB", timezoneId: "UTC", ...options });
  const found = watch(context, elsewhere, mayFail);
  await withAssets(context);
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", event => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (as) await context.addCookies(as.cookies());
  try {
    await steps(await context.newPage(), context);
  } catch (error) {
    error.message = error.message.replace(/Browser logs:[^]*?Call log:/, "Call log:");
    if (found.length) error.message += `\nSeen on the way:\n${found.join("\n")}`;
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(found, []);
}

/** Runs a test of the group for each item, as many at once as the group's concurrency allows: `of` maps an item to the test's
 * name and function. */
export const concurrently = (group, all, of) => Promise.all(all.map(one => group.test(...of(one))));

/** Navigates there, and asserts the status. */
export async function open(page, path, status = 200) {
  const answer = await page.goto(path);
  assert.equal(answer.status(), status, path);
}

/** Signs in through the form. */
export async function signIn(page, person) {
  await page.getByLabel("Email").fill(person.email);
  await page.getByLabel("Password").fill(person.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(url => !url.pathname.startsWith("/sign-in"));
}

/** The button in the form that contains this field. */
export const inForm = (field, name) => field.locator("xpath=ancestor::form").getByRole("button", { name });

/** Finishes transitions, so that colours have their final values. */
export const settle = page => page.evaluate(() => document.getAnimations().forEach(one => { try { one.finish(); } catch { one.cancel(); } }));

/** The axe violations of the current page, one line per rule, of all rules or only the colour rules; `unsure` is called with
 * what axe could not decide. */
export async function violations(page, { rules = ALL_RULES, unsure = () => {} } = {}) {
  await settle(page);
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const [found, undecided] = await page.evaluate(async runOnly => {
    // Passes are not reported, so axe can skip serializing each element.
    globalThis.axe.configure({ noHtml: true });
    const found = await globalThis.axe.run(document, { runOnly, resultTypes: ["violations", "incomplete"], iframes: false });
    const describe = node => `${node.target.join(" ")} (${node.any.concat(node.all, node.none).map(one => one.message).join("; ")})`;
    const lines = rules => rules.map(one => `${one.id}: ${one.nodes.slice(0, 3).map(describe).join(" | ")}`);
    return [lines(found.violations), lines(found.incomplete)];
  }, rules);
  undecided.forEach(unsure);
  return found;
}

/** The elements that overflow a viewport of that width; `innerWidth` would grow with them. */
export async function overflow(page, viewport) {
  await page.setViewportSize(viewport);
  return page.evaluate(width => {
    const whole = document.documentElement.scrollWidth;
    if (whole <= width) return [];
    const isScrolled = element => {
      for (let at = element.parentElement; at; at = at.parentElement) {
        if (/auto|scroll|hidden/.test(getComputedStyle(at).overflowX)) return true;
      }
      return false;
    };
    const out = [...document.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > width + 1 && !isScrolled(one));
    return [`${whole} px in ${width}: ${out.slice(-3).map(one => one.outerHTML.slice(0, 120)).join(" | ")}`];
  }, viewport.width);
}

/** Asserts that the current page has no axe violation and no overflow at 320 px. */
export async function assertSound(page) {
  const viewport = page.viewportSize();
  const found = [...(await violations(page)), ...(await overflow(page, NARROW))];
  await page.setViewportSize(viewport);
  assert.deepEqual(found, [], page.url());
}
