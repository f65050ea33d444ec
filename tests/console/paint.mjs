// Not a test but a benchmark: paint.mjs BOOTSTRAP_JSON NPM_FOLDER, as `run.sh CAIRN_BINARY --paint` calls it. It measures the
// time from the request to the first contentful paint with an empty cache, for each page and for an empty page of a bare server,
// interleaved in the same run: medians, and their ratio against the limit. The same empty page with the isolation headers shows
// how much of it these cost. PATTERN in CAIRN_CONSOLE_TEST selects pages. Use a release build on an idle machine.
import { createServer } from "node:http";
import { browse, quit } from "./support/browser.mjs";
import { seeded, views } from "./support/views.mjs";

const ROUNDS = 9;
/** The maximum ratio of a page's first contentful paint to that of the empty page. */
const LIMIT = 1.3;
const EMPTY = "<!doctype html><html lang=en><meta charset=utf-8><title>Empty</title><p>Empty</p></html>";

const HTML = { "content-type": "text/html; charset=utf-8" };
/** Because of one of these headers a browser switches to another process for the page, whatever its content. */
const GUARDED = { ...HTML, "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin" };
const bare = createServer((asked, answer) => answer.writeHead(200, asked.url === "/guarded" ? GUARDED : HTML).end(EMPTY));
await new Promise(done => bare.listen(0, "127.0.0.1", done));
const empty = `http://127.0.0.1:${bare.address().port}/`;

/** Milliseconds to the first contentful paint, in a new context, whose cache is empty. */
async function firstPaint(url, as) {
  let took;
  await browse({ as, elsewhere: empty }, async page => {
    await page.goto(url);
    took = await page.evaluate(() => new Promise(done => {
      const report = list => list.getEntriesByName("first-contentful-paint").forEach(one => done(one.startTime));
      new PerformanceObserver(report).observe({ type: "paint", buffered: true });
    }));
  });
  return took;
}

const median = samples => samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)];

const chosen = new RegExp(process.env.CAIRN_CONSOLE_TEST ?? "");
const isMeasured = view => !view.then && (view.status ?? 200) === 200 && chosen.test(view.name);
const pages = views(await seeded()).filter(isMeasured);
let missed = 0;
const row = (...cells) => cells.map(cell => String(cell).padEnd(9)).join("");
console.log(row("ms", "empty", "ratio", "guarded", "ratio", "page"));
for (const view of pages) {
  const [ours, theirs, guarded] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await firstPaint(view.path, view.as));
    theirs.push(await firstPaint(empty));
    guarded.push(await firstPaint(`${empty}guarded`));
  }
  const [page, peer, same] = [median(ours), median(theirs), median(guarded)];
  const isMissed = page / peer > LIMIT;
  if (isMissed) missed += 1;
  console.log(row(page.toFixed(0), peer.toFixed(0), (page / peer).toFixed(2), same.toFixed(0), (page / same).toFixed(2), `${view.name}${isMissed ? "  MISSED" : ""}`));
}
console.log(`${missed} of ${pages.length} pages take more than ${LIMIT} times the empty page`);
bare.close();
await quit();
