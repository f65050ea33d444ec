// No test, a bench: paint.mjs BOOTSTRAP_JSON NPM_FOLDER, as `run.sh CAIRN_BINARY --paint` calls it. How long a browser with an empty
// cache takes from asking for a page to its first contentful paint, beside an empty page of a bare server, by turns in
// the same run: medians, and their ratio against the limit. Use a release build on a machine that has nothing else to do.
import { createServer } from "node:http";
import { browse, quit } from "./support/browser.mjs";
import { seeded, views } from "./support/views.mjs";

const ROUNDS = 9;
/** First contentful paint of a page to that of the empty page. */
const LIMIT = 1.3;
const EMPTY = "<!doctype html><html lang=en><meta charset=utf-8><title>Empty</title><p>Empty</p></html>";

const bare = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(EMPTY));
await new Promise(done => bare.listen(0, "127.0.0.1", done));
const empty = `http://127.0.0.1:${bare.address().port}/`;

/** Milliseconds to the first contentful paint, in a context of its own, which has nothing in its cache. */
async function painted(url, as) {
  let took;
  await browse({ as, elsewhere: empty }, async page => {
    await page.goto(url);
    took = await page.evaluate(() => new Promise(done => {
      const told = list => list.getEntriesByName("first-contentful-paint").forEach(one => done(one.startTime));
      new PerformanceObserver(told).observe({ type: "paint", buffered: true });
    }));
  });
  return took;
}

const median = samples => samples.toSorted((one, other) => one - other)[Math.floor(samples.length / 2)];

const pages = views(await seeded()).filter(view => !view.then && (view.status ?? 200) === 200);
let missed = 0;
console.log("ms      empty   ratio   page");
for (const view of pages) {
  const [ours, theirs] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await painted(view.path, view.as));
    theirs.push(await painted(empty));
  }
  const [page, peer] = [median(ours), median(theirs)];
  if (page / peer > LIMIT) missed += 1;
  console.log(`${page.toFixed(0).padEnd(8)}${peer.toFixed(0).padEnd(8)}${(page / peer).toFixed(2).padEnd(8)}${view.name}${page / peer > LIMIT ? "  MISSED" : ""}`);
}
console.log(`${missed} of ${pages.length} pages take more than ${LIMIT} times the empty page`);
bare.close();
await quit();
