// What a page costs: bytes over the wire and requests, cold and warm, and that nothing moves while it loads.
import assert from "node:assert/strict";
import test from "node:test";
import { atOnce, browse, open } from "./support/browser.mjs";
import { seeded, views } from "./support/views.mjs";

const MOST_BYTES = 60_000;
const MOST_COLD = 4;
const MOST_WARM = 1;
// Parts that are fetched afterwards, events, the icon and what the browser looks for by itself count by their bytes alone.
const COUNTED = ["Document", "Stylesheet", "Script", "Font", "Image"];

/** What a page asked of the network until it was quiet. */
async function loaded(page, context, path, status) {
  const session = await context.newCDPSession(page);
  const requests = new Map();
  await session.send("Network.enable");
  session.on("Network.requestWillBeSent", event => requests.set(event.requestId, { type: event.type, url: event.request.url, bytes: 0 }));
  session.on("Network.requestServedFromCache", event => requests.delete(event.requestId));
  session.on("Network.responseReceived", event => { if (event.response.fromDiskCache) requests.delete(event.requestId); });
  session.on("Network.loadingFinished", event => {
    const request = requests.get(event.requestId);
    if (request) request.bytes = event.encodedDataLength;
  });
  await open(page, path, status);
  await page.waitForLoadState("load");
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  await session.detach();
  const all = [...requests.values()];
  const counted = all.filter(one => COUNTED.includes(one.type) && !/icon[^/]*\.svg/.test(one.url));
  return { bytes: all.reduce((sum, one) => sum + one.bytes, 0), requests: counted.map(one => new URL(one.url).pathname) };
}

const moved = page => page.evaluate(() => new Promise(done => {
  const seen = [];
  new PerformanceObserver(list => seen.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true });
  const told = one => `${one.value.toFixed(4)}: ${one.sources.slice(0, 2).map(source => source.node?.nodeName).join(", ")}`;
  setTimeout(() => done(seen.filter(one => !one.hadRecentInput).map(told)), 100);
}));

test("weight", { concurrency: 2 }, async group => {
  const seed = await seeded();
  await atOnce(group, views(seed).filter(one => !one.then), view => [`${view.name} is light`, report =>
    browse({ as: view.as }, async (page, context) => {
      const cold = await loaded(page, context, view.path, view.status);
      const shifts = await moved(page);
      await page.goto("about:blank");
      const warm = await loaded(page, context, view.path, view.status);
      report.diagnostic(`${view.name}: ${cold.bytes} bytes in ${cold.requests.length}, warm ${warm.bytes} in ${warm.requests.length}`);
      assert.ok(cold.bytes <= MOST_BYTES, `${cold.bytes} bytes`);
      assert.ok(cold.requests.length <= MOST_COLD, `cold: ${cold.requests.join(", ")}`);
      assert.ok(warm.requests.length <= MOST_WARM, `warm: ${warm.requests.join(", ")}`);
      assert.deepEqual(shifts, [], "what moved while it loaded");
    })]);
});
