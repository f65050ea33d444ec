// The cost of a page: bytes over the wire and requests, cold and warm, and that nothing shifts while it loads.
import { open } from "./browser.mjs";

const MAX_BYTES = 60_000;
const MAX_COLD_REQUESTS = 4;
const MAX_WARM_REQUESTS = 1;
// Fragments fetched later, events, the icon and the browser's own requests count only by their bytes.
const COUNTED = ["Document", "Stylesheet", "Script", "Font", "Image"];

/** The bytes and requests of a page load until the network was quiet. */
async function load(page, context, path, status) {
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

const layoutShifts = page => page.evaluate(() => new Promise(done => {
  const seen = [];
  new PerformanceObserver(list => seen.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true });
  const describe = one => `${one.value.toFixed(4)}: ${one.sources.slice(0, 2).map(source => source.node?.nodeName).join(", ")}`;
  setTimeout(() => done(seen.filter(one => !one.hadRecentInput).map(describe)), 100);
}));

/** The faults of a first load in a new context: too heavy, or layout shifts. The page stays open afterwards. */
export async function cold(page, context, { path, status }) {
  const { bytes, requests } = await load(page, context, path, status);
  const found = (await layoutShifts(page)).map(one => `moved while it loaded: ${one}`);
  if (bytes > MAX_BYTES) found.push(`${bytes} bytes`);
  if (requests.length > MAX_COLD_REQUESTS) found.push(`cold: ${requests.join(", ")}`);
  return { found, summary: `${bytes} bytes in ${requests.length} requests` };
}

/** The same for a load in a context that has cached the page. */
export async function warm(page, context, { path, status }) {
  await page.goto("about:blank");
  const { bytes, requests } = await load(page, context, path, status);
  const found = requests.length > MAX_WARM_REQUESTS ? [`warm: ${requests.join(", ")}`] : [];
  return { found, summary: `warm ${bytes} bytes in ${requests.length}` };
}
