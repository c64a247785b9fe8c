// Where tokens look in an image, on a server whose model takes images (one of the tests' own, with random weights).
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { give, largePng } from "./attach_case.mjs";
import { check, serve, showNewest } from "./served.mjs";

export const visionModel = (program) => join(dirname(resolve(program)), "tests/vision_goldens/smolvlm");

// Goes to the explanation of an answer's token.
export async function ask(page, url) {
  await page.goto(url);
  await page.waitForSelector("[aria-label='Attach images']:not([aria-disabled])");
  await page.evaluate(() => {
    const settings = JSON.parse(localStorage.getItem("candor.settings"));
    localStorage.setItem("candor.settings", JSON.stringify({ ...settings, maxTokens: 8, seed: 3, numbers: { ...settings.numbers, min_tokens: 8 } }));
  });
  await page.reload();
  await page.waitForSelector("[aria-label='Attach images']:not([aria-disabled])");
  await give(page, "drop", [await largePng(page, 96, 64)]);
  await page.waitForSelector(".composer .thumb");
  await page.fill("#composer", "What is in this picture?");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".message.is-assistant footer");
  await page.click("[title='Show tokens']");
  await page.click(".token >> nth=2");
  await page.waitForSelector(".looked figure");
}

const rects = (page, place) => page.locator(`${place} .heat rect`).evaluateAll((all) => all.map((rect) => ["x", "y", "width", "height", "fill-opacity"].map((name) => Number(rect.getAttribute(name)))));

export async function looked({ page, browser, program, examine }) {
  check(existsSync(visionModel(program)), "the build has a model that takes images");
  const server = await serve(program, [], visionModel(program));
  const refused = [];
  page.on("console", (message) => /Content Security Policy/i.test(message.text()) && refused.push(message.text()));
  try {
    await showNewest(page, server.url);
    const replies = [];
    page.on("response", (response) => response.url().endsWith("/v1/chat/completions") && replies.push(response.text()));
    await ask(page, server.url);
    const explained = (await replies.at(-1)).split("\n").filter((line) => line.startsWith("data: {")).flatMap((line) => JSON.parse(line.slice(6)).choices[0]?.explain ?? []);
    const told = explained[2].images;
    check(told.length === 1 && told[0].width === 96 && told[0].height === 64, `one image: ${JSON.stringify(told).slice(0, 200)}`);
    const shares = told[0].tiles.flatMap((tile) => tile.shares);
    const sum = shares.reduce((a, b) => a + b, 0);
    check(told[0].share > 0 && told[0].share < 1 && Math.abs(sum - told[0].share) < 1e-4 * shares.length, `shares of the whole: ${sum} of ${told[0].share}`);
    for (const place of [".message .thumb", ".looked"]) {
      const drawn = await rects(page, place);
      const [least, most] = [Math.min(...shares), Math.max(...shares)];
      const strong = shares.filter((share) => (share - least) / (most - least) > 0.02);
      check(drawn.length === strong.length, `${place}: ${drawn.length} patches of ${strong.length}`);
      check(drawn.every(([x, y, width, height, opacity]) => x >= -0.01 && y >= -0.01 && x + width < 96.01 && y + height < 64.01 && opacity > 0 && opacity <= 0.75), `${place}: within the image, and translucent`);
      check(Math.max(...drawn.map((rect) => rect[4])) === 0.75, `${place}: the strongest is the least transparent`);
    }
    const [image, heat] = await page.evaluate(() => [".message .thumb img", ".message .thumb .heat"].map((place) => JSON.stringify(document.querySelector(place).getBoundingClientRect())));
    check(image === heat, `the grid lies on the image: ${heat} on ${image}`);
    check(/of its attention.*row \d+, column \d+/s.test(await page.locator(".looked figcaption").innerText()), "words say it, too");
    check(Number(await page.getAttribute(".looked figure", "data-share")) === told[0].share, "the share is the API's");
    await page.click("[aria-label='Next token']");
    await page.waitForFunction((share) => Number(document.querySelector(".looked figure").dataset.share) !== share, told[0].share);
    await page.click("[aria-label='Close the explanation']");
    check((await page.locator(".heat").count()) === 0, "without an explanation the image is as it was");
    await examine({ browser, url: server.url }, ["looked"], { looked: ask });
    check(refused.length === 0, `the policy of the page has nothing against it: ${refused.join("; ")}`);
  } finally {
    await server.stop();
  }
}
