// A model that reads: what the page offers in place of a chat, and what comes of texts.
import { readFileSync } from "node:fs";
import { check, need, root, serve, showNewest } from "./served.mjs";

async function open(browser, program, model) {
  const server = await serve(program, [], `tests/encoders/goldens/${model}`);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await showNewest(page, server.url);
  await page.goto(server.url);
  await page.waitForSelector(".reading-ask textarea");
  return { page, server };
}

async function rowsOf(page, texts, query) {
  if (query) await page.fill(".reading-ask input", query);
  await page.fill(".reading-ask textarea", texts);
  await page.click(".reading-ask .primary");
  await page.waitForSelector(".reading-rows tbody tr");
  return page.locator(".reading-rows tbody tr").allInnerTexts();
}

export async function reading({ browser, program }) {
  need("axe-core");
  const axe = readFileSync(`${root}/web/node_modules/axe-core/axe.min.js`, "utf8");
  for (const [model, query, words] of [["bert", "the engine", "1.0000"], ["bert_pairs", "why?", "0."], ["distilbert", "", "label"]]) {
    const { page, server } = await open(browser, program, model);
    check((await page.locator("#composer").count()) === 0, "a model that writes nothing is not asked to");
    const rows = await rowsOf(page, "the engine\na text of words\n", query);
    check(rows.length === 2 && rows.some((row) => row.includes(words)), `${model}: ${rows.join(" | ")}`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    check(violations.length === 0, `${model}: ${violations.map((one) => one.id).join(", ")}`);
    if (process.env.CANDOR_SHOTS) await page.screenshot({ path: `${process.env.CANDOR_SHOTS}/reading-${model}.png` });
    await page.close();
    await server.stop();
  }
}
