// What goes wrong, and what is shown then: plainly, with nothing lost and nothing executed.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askForLongAnswers, check, root, serve } from "./served.mjs";

const slow = ["--backend", "reference", "--threads", "1"];
const say = async (page, text) => {
  await page.fill("#composer", text);
  await page.keyboard.press("Enter");
};
const fault = (page) => page.waitForSelector(".message .fault").then((element) => element.innerText());

async function away({ page, server }) {
  await askForLongAnswers(page);
  await say(page, "Tell me a story about a cat");
  await page.waitForFunction(() => document.querySelector(".message.is-growing .markdown p")?.innerText.length > 5);
  await server.stop("SIGKILL");
  check(/went away|broke off/.test(await fault(page)), `it is told: ${await fault(page)}`);
  check((await page.locator(".message.is-assistant .markdown").innerText()).length > 5, "what had come is kept");
  await say(page, "And then?");
  await page.waitForSelector(".message .fault >> nth=1");
  check(/does not answer/.test(await page.locator(".message .fault").nth(1).innerText()), "so it is afterwards");
  check(await page.isVisible("text=And then?"), "what was typed is kept");
}

async function full({ page, url }) {
  const control = new AbortController();
  const other = await fetch(`${url}/v1/completions`, { method: "POST", signal: control.signal, headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Once", max_tokens: 400, ignore_eos: true, stream: true }) });
  await other.body.getReader().read();
  await say(page, "Is there room?");
  check(/The server is full/.test(await fault(page)), `it is told: ${await fault(page)}`);
  control.abort();
  await page.waitForTimeout(500);
  await page.click("text=Try again");
  await page.waitForSelector(".message.is-assistant .markdown p");
}

async function key({ page, browser }) {
  const field = "dialog input[type=password]";
  await page.waitForSelector(field);
  await page.fill(field, "wrong");
  await page.click("text=Use this key");
  await page.waitForSelector("dialog .fault >> text=not valid");
  await page.fill(field, "secret-key");
  await page.click("text=Use this key");
  await page.waitForSelector(".presets button");
  const kept = () => page.evaluate(() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage)].map((text) => text.includes("secret-key")));
  check(JSON.stringify(await kept()) === "[false,true]", "the key lives in the tab alone");
  await say(page, "Hello");
  await page.waitForSelector(".message.is-assistant footer");
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.waitForSelector(field);
  await other.fill(field, "secret-key");
  await other.click("text=Remember it");
  await other.click("text=Use this key");
  await other.waitForSelector(".presets button, .message");
  await page.waitForFunction(() => JSON.stringify(localStorage).includes("secret-key"));  // and beyond it where that was asked for
}

// Chosen by constraint: the model has to say it.
async function markup({ page }) {
  const evil = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><a href="javascript:window.hacked=3">click</a> [link](javascript:window.hacked=4) ![](https://example.com/x.png)`;
  await page.click("[title=Settings]");
  await page.selectOption("text=Form of the answer", "choice");
  await page.fill(".code-input:visible >> nth=0", evil);
  await page.click("[aria-label='Close the settings']");
  await say(page, evil);
  await page.waitForSelector(".message.is-assistant footer");
  for (const link of await page.locator(".message a").all()) await link.click();
  await page.waitForTimeout(300);
  check((await page.evaluate(() => window.hacked)) === undefined, "nothing is executed");
  check((await page.locator(".message img, .message script").count()) === 0, "nothing is followed");
  check((await page.locator(".markdown").innerText()).includes("<script>window.hacked=2</script>"), "it is shown as text");
}

async function large({ page }) {
  const text = `${"All the words of a long text. ".repeat(35_000)}THE END`;
  await page.fill("#composer", text);
  await page.keyboard.press("Enter");
  check((await fault(page)).length > 10, "it is told that the context is too small");
  check((await page.locator(".message.is-user .plain-text").innerText()).length < 20_000, "a long message is folded");
  await page.hover(".message.is-user");
  await page.click(".message.is-user [title='Edit, as a new branch']");
  check((await page.inputValue("[aria-label='Edit the message']")) === text, "nothing of it is lost");
}

async function no_template({ browser, program }) {
  const folder = mkdtempSync(join(tmpdir(), "candor-page-"));
  const bytes = readFileSync(join(root, "models/pocket/pocket-q8_0.gguf"));
  const at = bytes.indexOf("tokenizer.chat_template");
  bytes.write("tokenizer.chat_tempXXXX", at);
  const path = join(folder, "plain.gguf");
  writeFileSync(path, bytes);
  const server = await serve(program, [], path);
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    await page.waitForSelector(".notice >> text=no chat template");
    await say(page, "Hello");
    check(/chat template/.test(await fault(page)), "a chat says so, too");
    await page.goto(`${server.url}/#compare`);
    await page.reload();
    await page.fill(".compare-ask textarea", "Once upon a time");
    await page.click(".compare-ask >> text=Compare");
    await page.waitForSelector(".column footer >> nth=2");
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

async function typed({ page }) {
  await page.fill("#composer", "half a thought");
  await page.reload();
  await page.waitForSelector("#composer");
  check((await page.inputValue("#composer")) === "half a thought", "a draft outlives a reload");
}

export const badCases = {
  away: [away, slow],
  full: [full, [...slow, "--parallel", "1", "--max-queued", "0"]],
  key: [key, ["--api-key", "secret-key"]],
  markup: [markup, []],
  large: [large, []],
  no_template: [no_template, []],
  typed: [typed, []],
};
