// Screenshots of every page and state, for review: pictures.mjs BOOTSTRAP_JSON NPM_FOLDER FOLDER, as run.sh calls it.
import { browse, DESK, PHONE, quit, settle } from "./support/browser.mjs";
import { openView, seeded, views } from "./support/views.mjs";

const folder = process.argv[4];
const LOOKS = [
  ["light", { colorScheme: "light" }, DESK],
  ["dark", { colorScheme: "dark" }, DESK],
  ["forced", { forcedColors: "active" }, DESK],
  ["phone", { colorScheme: "light" }, PHONE],
];

let failed = 0;
const wanted = new RegExp(process.env.CAIRN_CONSOLE_TEST ?? "");
for (const view of views(await seeded()).filter(one => wanted.test(one.name))) {
  try {
    await browse({ as: view.as }, async page => {
      await openView(page, view);
      for (const [name, media, viewport] of LOOKS) {
        await page.emulateMedia({ colorScheme: "light", forcedColors: "none", ...media });
        await page.setViewportSize(viewport);
        await settle(page);
        // Dialogs and popovers are positioned in the viewport, so a full-page screenshot would misplace them.
        const fullPage = (await page.locator(":modal, :popover-open").count()) === 0;
        await page.screenshot({ path: `${folder}/${view.name.replaceAll(/[^a-z]+/g, "-")}.${name}.png`, fullPage });
      }
    });
  } catch (error) {
    failed += 1;
    console.error(`${view.name}: ${error.message}`);
  }
}
await quit();
process.exitCode = failed ? 1 : 0;
