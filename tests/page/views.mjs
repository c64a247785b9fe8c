// Ways to each view, as people go them.
import { bringIn, catchChats, give, largePng, mathematics, tellItTakesImages } from "./attach_case.mjs";

async function begin(page, url) {
  await page.goto(url);
  await page.waitForSelector(".presets button, .message");
}

async function answered(page, url, text = "Tell me a story about a cat that finds a lighthouse.") {
  await begin(page, url);
  await page.fill("#composer", text);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".message.is-assistant footer");
}

export const views = {
  welcome: begin,
  chat: answered,
  async settings(page, url) {
    await begin(page, url);
    await page.click("[title=Settings]");
    await page.waitForSelector("#number-temperature");
    await page.click("text=All other numbers");
    await page.click("text=Order of stages, biases, bans");
  },
  async why(page, url) {
    await answered(page, url);
    await page.click("[title='Show tokens']");
    await page.click(".token.confidence-3, .token.confidence-4"); // one that the model was in two minds about
    await page.waitForSelector(".why .stage");
  },
  async reproduce(page, url) {
    await answered(page, url);
    await page.hover(".message.is-assistant");
    await page.click("[title=Reproduce]");
    await page.waitForSelector("dialog pre");
  },
  async timeline(page, url) {
    await answered(page, url, `${"The cat found a lighthouse. ".repeat(52)}And then?`);
    await page.hover(".message.is-assistant");
    await page.click("[title=Timeline]");
    await page.waitForSelector(".timeline");
  },
  async attached(page, url) {
    await tellItTakesImages(page);
    await begin(page, url);
    await page.waitForSelector("[aria-label='Attach images']");
    await catchChats(page);
    await give(page, "drop", [await largePng(page, 640, 420)]);
    await page.waitForSelector(".composer .thumb");
    await page.fill("#composer", "What is in this picture?");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".message.is-assistant footer");
    const notes = { name: "notes about lighthouses.md", mimeType: "text/markdown", buffer: Buffer.from("# Lighthouses\n\nThey stand by the sea.\n") };
    await give(page, "drop", [await largePng(page, 5000, 2400), notes]);
    await page.waitForSelector(".composer .attachments li >> nth=1");
    await page.fill("#composer", "And in this one?");
    for (const path of ["**/v1/ui/parameters", "**/v1/chat/completions"]) await page.unroute(path);
  },
  async formulas(page, url) {
    await begin(page, url);
    await bringIn(page, [["Roots of a quadratic", "What are the roots?", mathematics]]);
    await page.waitForSelector(".markdown math mtable");
  },
  async find(page, url) {
    await begin(page, url);
    await bringIn(page, [["Rain", "A poem about the sea", "Waves and foam"], ["Ships", "Which is the largest?", "One that crosses the sea in a week."], ["Bread", "Flour", "Water"]]);
    await page.waitForSelector(".conversation >> nth=2", { state: "attached" });
    if (await page.isVisible("[aria-label=Conversations]")) await page.click("[aria-label=Conversations]");
    await page.hover(".conversations li >> nth=2");
    await page.click("[title='Pin Bread']");
    await page.fill("#search", "the sea");
    await page.waitForSelector(".conversation mark");
  },
  async shortcuts(page, url) {
    await begin(page, url);
    await page.focus(".list");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog .shortcuts");
  },
  async compare(page, url) {
    await page.goto(`${url}/#compare`);
    await page.reload();
    await page.fill(".compare-ask textarea", "Tell me about a little bird");
    await page.click(".compare-ask >> text=Compare");
    await page.waitForSelector(".column footer >> nth=2");
  },
  async machine(page, url) {
    await page.goto(`${url}/#machine`);
    await page.reload();
    await page.waitForSelector(".charts canvas");
    await page.waitForTimeout(1500);
  },
};
