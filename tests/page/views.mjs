// Ways to each view, as people go them.
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
