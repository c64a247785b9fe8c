// Pictures of each view, light and dark, wide and narrow: node tests/page/shots.mjs PROGRAM FOLDER
import { join } from "node:path";
import { openBrowser, serve } from "./served.mjs";

const [program, folder] = process.argv.slice(2);
const server = await serve(program, ["--speculate", "ngram"]);
const browser = await openBrowser();
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
      page.on("pageerror", (error) => console.log("page error:", error.message));
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && console.log("console:", message.text()));
      const shot = (name) => page.screenshot({ path: join(folder, `${name}-${size}-${theme}.png`) });
      await page.goto(server.url);
      await page.waitForSelector(".presets button");
      await shot("welcome");
      await page.fill("#composer", "Tell me a story about a cat that finds a lighthouse.");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".message.is-assistant footer");
      await page.fill("#composer", "And what did the dog say?");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".message.is-assistant footer >> nth=1");
      await shot("chat");
      await page.click("[title='Show tokens']");
      await page.click(".token >> nth=14");
      await page.waitForSelector(".stage");
      await shot("why");
      await page.click("[aria-label='Close the explanation']");
      await page.click("[title='Settings']");
      await shot("settings");
      await page.click("[aria-label='Close the settings']");
      await page.goto(`${server.url}/#compare`);
      await page.reload();
      await page.fill(".compare-ask textarea", "Tell me about a little bird");
      await page.click("text=Compare >> nth=-1");
      await page.waitForSelector(".column footer >> nth=2");
      await shot("compare");
      await page.goto(`${server.url}/#machine`);
      await page.reload();
      await page.waitForSelector(".charts");
      await Promise.all([load(server.url), page.waitForTimeout(6000)]);
      await shot("machine");
      await page.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
