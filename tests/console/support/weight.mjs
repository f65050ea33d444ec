// What a page costs: bytes over the wire and requests, cold and warm, and that nothing moves while it loads.
import { open } from "./browser.mjs";

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

/** What a first load in a new context is too heavy for, or moves: nothing, where it is light. The page is there afterwards. */
export async function cold(page, context, { path, status }) {
  const { bytes, requests } = await loaded(page, context, path, status);
  const found = (await moved(page)).map(one => `moved while it loaded: ${one}`);
  if (bytes > MOST_BYTES) found.push(`${bytes} bytes`);
  if (requests.length > MOST_COLD) found.push(`cold: ${requests.join(", ")}`);
  return { found, told: `${bytes} bytes in ${requests.length} requests` };
}

/** The same of a load in a context that has seen the page. */
export async function warm(page, context, { path, status }) {
  await page.goto("about:blank");
  const { bytes, requests } = await loaded(page, context, path, status);
  const found = requests.length > MOST_WARM ? [`warm: ${requests.join(", ")}`] : [];
  return { found, told: `warm ${bytes} bytes in ${requests.length}` };
}
