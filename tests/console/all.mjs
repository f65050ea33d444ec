// The tests of the console: all.mjs BOOTSTRAP_JSON NPM_FOLDER FILE…, as run.sh calls it.
import { after } from "node:test";
import { quit } from "./support/browser.mjs";

for (const file of process.argv.slice(4)) await import(`./${file}.mjs`);

after(quit);
