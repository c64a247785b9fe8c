// Pictures of each view, light and dark, wide and narrow, and those that docs keeps: node tests/page/shots.mjs PROGRAM FOLDER
import { join } from "node:path";
import { openBrowser, serve, showNewest } from "./served.mjs";
import { views } from "./views.mjs";

const [program, folder] = process.argv.slice(2);
const server = await serve(program, ["--speculate", "ngram"]);
const browser = await openBrowser();
const kept = ["why-wide-light", "machine-wide-dark", "compare-wide-light"]; // as docs has them
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };

async function load(url) {
  const ask = (i) => fetch(`${url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: `Once upon a time ${i}`, max_tokens: 300, seed: i, ignore_eos: true }) });
  for (let round = 0; round < 4; round++) await Promise.all([1, 2, 3, 4, 5, 6].map((i) => ask(round * 10 + i)));
}

try {
  for (const theme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(sizes)) {
      const page = await browser.newPage({ viewport, colorScheme: theme });
      await showNewest(page, server.url);
      page.on("pageerror", (error) => console.log("page error:", error.message));
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && console.log("console:", message.text()));
      for (const [name, go] of Object.entries(views)) {
        await go(page, server.url);
        if (name === "machine") await Promise.all([load(server.url), page.waitForTimeout(8000)]);
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(folder, `${name}-${size}-${theme}.png`) });
        if (kept.includes(`${name}-${size}-${theme}`)) await page.screenshot({ path: join(folder, `page-${name}.jpg`), type: "jpeg", quality: 78 });
        await page.goto("about:blank");
        await page.goto(server.url);
        await page.evaluate(() => (localStorage.clear(), indexedDB.deleteDatabase("candor")));
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
