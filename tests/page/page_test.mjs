// The page in a real browser, on a real server: node page_test.mjs PART PROGRAM. Exit code 77 where Node's packages or a
// browser are absent: the test counts as skipped.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { files, find, formulas, images } from "./attach_case.mjs";
import { badCases } from "./bad_cases.mjs";
import { looked } from "./looked_case.mjs";
import { reading } from "./reading_case.mjs";
import { askForLongAnswers, check, need, openBrowser, root, serve, showNewest } from "./served.mjs";
import { views } from "./views.mjs";

const slow = ["--backend", "reference", "--threads", "1"]; // so that there is time to stop
const say = async (page, text) => {
  await page.fill("#composer", text);
  await page.keyboard.press("Enter");
};
const answers = (page) => page.locator(".message.is-assistant");
const ended = (page, n) => page.waitForFunction((n) => document.querySelectorAll(".message.is-assistant footer").length === n, n);

async function chat({ page, url }) {
  await askForLongAnswers(page);
  await say(page, "Tell me a story about a cat");
  await page.waitForSelector(".message.is-growing .markdown p");
  const early = (await answers(page).innerText()).length;
  await page.waitForFunction((n) => document.querySelector(".message.is-assistant .markdown").innerText.length > n + 20, early);
  await page.click("[aria-label=Stop]");
  await page.waitForSelector("text=Stopped.");
  const stopped = await page.locator(".markdown").innerText();
  check(stopped.length > 20, "what had come is kept");
  const live = () => fetch(`${url}/v1/ui/live`).then((reply) => reply.json());
  for (let i = 0; i < 100 && (await live()).running > 0; i++) await page.waitForTimeout(50);
  check((await live()).running === 0, "the server stops, too");
  await page.click("[title='Answer again']");
  await page.waitForSelector(".message.is-growing .markdown p");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".branches >> text=2 / 2");
  await page.click("[aria-label='Branch before']");
  check((await page.locator(".markdown").innerText()) === stopped, "the first branch is as it was");
  await page.hover(".message.is-user");
  await page.click(".message.is-user [title='Edit, as a new branch']");
  await page.fill("[aria-label='Edit the message']", "Tell me about a dog");
  await page.click("text=Save as a branch");
  await page.waitForSelector(".message.is-user .branches >> text=2 / 2");
  await page.waitForSelector(".message.is-growing .markdown p");
  await page.keyboard.press("Escape");
  await page.waitForTimeout(600); // the browser's store is written
  await page.reload();
  await page.waitForSelector("text=Tell me about a dog");
  check((await page.locator(".message.is-user .branches").innerText()).replace(/\s/g, "") === "2/2", "branches outlive a reload");
}

// What the API says of a request, `candor explain` says of it, too. The prompt is text as it stands.
async function sameInTheTerminal(program, url) {
  const numbers = { temperature: 0.8, top_k: 12, top_p: 0.9, min_p: 0.02, repetition_penalty: 1.2, seed: 9 };
  const prompt = "Once upon a time a dog and a dog";
  const body = { prompt, max_tokens: 8, explain: true, ...numbers };
  const reply = await (await fetch(`${url}/v1/completions`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } })).json();
  const options = Object.entries(numbers).flatMap(([name, value]) => [`--${name.replaceAll("_", "-")}`, String(value)]);
  const raw = spawnSync(program, ["explain", "--help-all"], { encoding: "utf8" }).stdout.includes("--raw ") ? ["--raw"] : [];
  const said = spawnSync(program, ["explain", ...raw, "-m", join(root, "models/pocket/pocket-q8_0.gguf"), "-p", prompt, "-n", "8", "--json", ...options], { encoding: "utf8", maxBuffer: 1 << 26 });
  const tokens = JSON.parse(said.stdout).tokens.filter((token) => token.stages);
  const rows = (list) => list.map((one) => [one.token, one.logit, one.probability]);
  const plain = (token, draw) => JSON.stringify([token.token, draw, token.stages.map((stage) => [stage.name, stage.n_left, rows(stage.best), rows(stage.cut), rows(stage.lowered)])]);
  const { explain } = reply.choices[0];
  check(tokens.length === explain.length && tokens.length === 8, `as many tokens: ${tokens.length} and ${explain.length}`);
  tokens.forEach((token, i) => check(plain(token, token.draw) === plain(explain[i], explain[i].draw), `token ${i} in the terminal: ${plain(token, token.draw)} / ${plain(explain[i], explain[i].draw)}`));
}

// The panel's stages beside those of the API for the same request.
async function why({ page, url, program }) {
  const sent = [];
  page.on("request", (request) => request.url().endsWith("/v1/chat/completions") && sent.push(request.postDataJSON()));
  await page.click("[title=Settings]");
  await page.fill("#number-top_k", "5");
  await page.fill("#number-repetition_penalty", "1.3");
  await page.keyboard.press("Tab");
  await page.click("[aria-label='Close the settings']");
  await say(page, "Tell me a story about a dog and a dog");
  await ended(page, 1);
  await page.click("[title='Show tokens']");
  const body = { ...sent[0], stream: false, explain: true };
  delete body.stream_options;
  const reply = await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } })).json();
  const { explain, logprobs } = reply.choices[0];
  let struck = 0;
  for (const at of [0, 7, 15]) {
    await page.click(`[data-at="${at}"]`);
    await page.waitForSelector(`.why .stage`);
    await page.waitForSelector(`.panel >> text=${at + 1} / ${explain.length}`);
    const shown = await page.evaluate(() => [...document.querySelectorAll(".why .stage")].map((stage) => {
      const rows = (state) => [...stage.querySelectorAll(`tr.is-${state}`)].map((row) => [row.dataset.token, row.dataset.logit, row.dataset.probability].map(Number));
      return { name: stage.dataset.stage, n_left: Number(stage.dataset.left), best: rows("left"), cut: rows("cut"), lowered: rows("lowered"),
        changed: [...stage.querySelectorAll("[data-changed]")].map((row) => Number(row.dataset.changed)) };
    }));
    const told = explain[at].stages.map((stage) => {
      const rows = (list) => list.map((one) => [one.token, one.logit, one.probability]);
      return { name: stage.name, n_left: stage.n_left, best: rows(stage.best), cut: rows(stage.cut), lowered: rows(stage.lowered),
        changed: stage.changed.map((change) => change.token) };
    });
    check(told.some((stage) => stage.changed.length > 0), "the penalty changed some logits");
    check(JSON.stringify(shown) === JSON.stringify(told), `the stages of token ${at} are the API's: ${JSON.stringify(shown).slice(0, 300)} / ${JSON.stringify(told).slice(0, 300)}`);
    check(Number(await page.getAttribute("[data-draw]", "data-draw")) === explain[at].draw, "the number that was drawn");
    check(Number(await page.getAttribute("[data-logprob]", "data-logprob")) === logprobs.content[at].logprob, "the logprob");
    struck += await page.locator(".why del").count();
  }
  check(struck > 0, "what was cut is struck through");
  await sameInTheTerminal(program, url);
  // On from token 7 with the second best: a branch that begins alike.
  await page.click(`[data-at="7"]`);
  await page.waitForSelector(`.panel >> text=8 / ${explain.length}`);
  await page.click(".stage[data-stage=logits] tr:not(.is-chosen) [aria-label^='Go on from here']");
  await page.waitForSelector(".message.is-assistant .branches >> text=2 / 2");
  await ended(page, 1);
  const pieces = await page.locator(".tokens [data-at]").allInnerTexts();
  const before = explain.slice(0, 7).map((token) => token.text.replaceAll("\n", "↵\n"));
  check(JSON.stringify(pieces.slice(0, 7)) === JSON.stringify(before), "the branch begins as the answer did");
  check(pieces[7] !== explain[7].text && pieces.length > 9, "and goes on with the other token");
  await page.click(`[data-at="9"]`);
  await page.waitForSelector(".why .stage");
}

async function compare({ page, url }) {
  await page.goto(`${url}/#compare`);
  await page.reload();
  await page.fill(".compare-ask textarea", "Tell me about a little bird");
  await page.click(".compare-ask >> text=Compare");
  await page.waitForSelector(".column footer >> nth=2");
  const at = Number(await page.getAttribute("[data-parts-at]", "data-parts-at"));
  const same = await page.locator(".is-same").allInnerTexts();
  check(at > 0 && new Set(same).size === 1, "the texts are the same until they part");
  const firsts = await page.locator(".token.is-first").allInnerTexts();
  check(new Set(firsts).size > 1, "and differ from there");
  await page.click("text=Add a column");
  await page.selectOption("[aria-label='Settings of column 4']", "greedy");
  await page.click(".compare-ask >> text=Compare");
  await page.waitForSelector(".column footer >> nth=3");
  const texts = await page.locator(".column-text").allInnerTexts();
  check(texts[0] === texts[3], "the same settings and seed give the same text");
}

async function machine({ page, url }) {
  await page.goto(`${url}/#machine`);
  await page.reload();
  await page.waitForSelector(".charts canvas");
  const shown = () => page.evaluate(() => ({
    blocks: document.querySelector(".chart [aria-label^='K/V']").ariaLabel,
    steps: document.querySelector(".chart [aria-label^='Rows']").ariaLabel,
    steep: document.querySelector(".percentiles tbody td").textContent,
    picture: document.querySelector(".charts canvas").toDataURL(),
  }));
  await page.waitForTimeout(1200);
  const before = await shown();
  const ask = (seed) => fetch(`${url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Once upon a time", max_tokens: 60, seed, ignore_eos: true }) });
  await Promise.all([1, 2, 3, 4].map(ask));
  await page.waitForFunction((old) => document.querySelector(".chart [aria-label^='K/V']").ariaLabel !== old.blocks, before);
  await page.waitForFunction((old) => document.querySelector(".charts canvas").toDataURL() !== old.picture, before);
  check((await shown()).steep !== "–", "percentiles are there");
  const drafters = await page.locator("[aria-label='Drafts'] tbody th").allInnerTexts();
  check(drafters.length === 2 && /^n-grams/.test(drafters[0]) && /^head/.test(drafters[1]), `n-grams draft beside the head: ${drafters}`);
  await ask(5);
  await page.waitForSelector(".chart [aria-label^='Step by operation']");
  const words = await page.getAttribute(".chart [aria-label^='Step by operation']", "aria-label");
  check(/products of matrices 0?\.?\d/.test(words), `products of matrices take time: ${words}`);
  check(/attention/.test(words) && /norms, rotation and the rest/.test(words), `the time of a step is told by operation: ${words}`);
}

// What is no number: the order of stages, biases, bans.
async function fields({ page }) {
  const sent = [];
  page.on("request", (request) => request.url().endsWith("/v1/chat/completions") && sent.push(request.postDataJSON()));
  await page.click("[title=Settings]");
  await page.click("text=Order of stages, biases, bans");
  const field = "text=Further fields of the request";
  for (const [text, words] of [["{", "is not JSON"], ["[]", "must be a JSON object"], ['{"messages": []}', "the page's own"]]) {
    await page.fill(field, text);
    await page.waitForSelector(`.panel .fault >> text=${words}`);
  }
  await say(page, "Hello");
  check(sent.length === 0 && (await page.inputValue("#composer")) === "Hello", "nothing is sent, and what was typed stays");
  await page.fill(field, '{"samplers": ["top_k", "top_p", "temperature"], "top_k": 3, "ignore_eos": true, "max_tokens": 12}');
  await page.press("#composer", "Enter");
  await ended(page, 1);
  check(sent[0].ignore_eos === true && sent[0].samplers.length === 3, "the request has them");
  await page.click("[title='Show tokens']");
  await page.click("[data-at='3']");
  await page.waitForSelector(".why .stage");
  const stages = await page.locator(".why .stage").evaluateAll((all) => all.map((one) => one.dataset.stage));
  check(stages.join() === "logits,top_k,top_p,temperature", `the stages come in that order: ${stages}`);
}

// Counters as a system with RAPL gives them, one of which begins anew after a second and a half. A busy machine delays
// one reading or another: single figures may be off, the middle one not.
async function power({ page, url }) {
  const began = Date.now();
  await page.route("**/v1/ui/live*", async (route) => {
    const reply = await route.fetch();
    const uj = 1000 * (Date.now() - began);
    const energy_uj = [["package-0", (470e6 + 20 * uj) % 500e6, 500e6], ["package-1", 10 * uj, 1e12]];
    await route.fulfill({ json: { ...(await reply.json()), energy_uj } });
  });
  await page.goto(`${url}/#machine`);
  await page.reload();
  await page.waitForSelector(".figure >> text=Power");
  const figure = page.locator(".figure", { hasText: "Power" }).locator("dd");
  const watts = [];
  for (let i = 0; i < 20; i++) {
    watts.push(Number((await figure.innerText()).match(/^[\d.]+/)?.[0]));
    await page.waitForTimeout(200);
  }
  const middle = [...watts].sort((a, b) => a - b)[watts.length / 2];
  check(middle > 15 && middle < 45, `30 J a second: ${watts} W`);
  check(watts.every((one) => one > 3 && one < 200), `whether a counter turned or not: ${watts} W`);
  await page.waitForSelector(".chart [aria-label^='Power']");
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

// Each step that read some of a long prompt, and each token.
async function timeline({ page }) {
  const chunks = [];
  page.on("response", async (response) => {
    if (!response.url().endsWith("/v1/chat/completions")) return;
    chunks.push(...(await response.text()).split("\n").filter((line) => line.includes("prompt_chunks")).map((line) => JSON.parse(line.slice(6)).timings.prompt_chunks));
  });
  await say(page, "A cat and a dog. ".repeat(60));
  await ended(page, 1);
  await page.hover(".message.is-assistant");
  await page.click("[title=Timeline]");
  await page.waitForSelector(".timeline rect.chunk");
  for (let i = 0; i < 100 && chunks.length === 0; i++) await page.waitForTimeout(100);  // the reply is read beside the page
  const told = chunks[0];
  check(told.length >= 2 && told.every(([begin, ms], i) => ms > 0 && (i === 0 || begin >= told[i - 1][0] + told[i - 1][1])), `chunks follow one another: ${JSON.stringify(told)}`);
  const n = await page.locator(".timeline rect.chunk").count();
  check(n === told.length, `${n} chunks are drawn of ${told.length}`);
  check((await page.locator(".timeline rect.tick").count()) > 5, "and the time of each token");
}

// In two tests, as one would take minutes.
const late = ["attached", "formulas", "find", "shortcuts"];
const axe = (tools) => examine(tools, Object.keys(views).filter((name) => !late.includes(name)));
const axe_late = (tools) => examine(tools, late);

async function examine(tools, names, ways = views) {
  const source = (await import("node:fs")).readFileSync(need("axe-core") && new URL("../../web/node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  for (const name of names) {
    for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
      const context = await tools.browser.newContext({ viewport, bypassCSP: true });
      const page = await context.newPage();
      await showNewest(page, tools.url);
      await ways[name](page, tools.url);
      await page.evaluate(source);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const told = violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 140)).join(" | ")}`);
        check(told.length === 0, `${name}, ${colorScheme}, ${viewport.width} wide: no violation, and there is\n${told.join("\n")}`);
      }
      await context.close();
    }
  }
}

async function origin({ page, url }) {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.reload();
  await views.why(page, url);
  await views.compare(page, url);
  await views.machine(page, url);
  const strangers = asked.filter((address) => !address.startsWith(`${url}/`) && !address.startsWith("data:"));
  check(strangers.length === 0, `nothing leaves the server: ${strangers.join(", ")}`);
  check(asked.length > 5, "something was asked");
}

// 2 000 messages: only what is seen is in the page. The rate of frames is told, not judged.
async function long({ page }) {
  const nodes = {};
  let parent = "";
  for (let i = 0; i < 2000; i++) {
    const id = `n${i}`;
    nodes[id] = { id, parent, role: i % 2 ? "assistant" : "user", content: `Message ${i}. ${"Some **words** that fill a line or two. ".repeat(1 + (i % 7))}`,
      children: i < 1999 ? [`n${i + 1}`] : [], chosen: 0, at: 0, state: "done" };
    parent = id;
  }
  const settings = { system: "", preset: "", numbers: {}, seed: null, maxTokens: null, stop: [], structure: { kind: "none", text: "" }, tools: "", beams: 0, model: "", explains: false };
  const file = JSON.stringify({ candor: 1, conversations: [{ id: "long", title: "Long", at: 1, settings, nodes, roots: ["n0"], chosen: 0 }] });
  await page.setInputFiles(".sidebar input[type=file]", { name: "long.json", mimeType: "application/json", buffer: Buffer.from(file) });
  await page.waitForSelector("text=Message 1999.");
  const rows = () => page.locator(".list-row").count();
  check((await rows()) < 60, `few rows are in the page, not ${await rows()}`);
  const frames = await page.evaluate(async () => {
    const list = document.querySelector(".list");
    const began = performance.now();
    let n = 0;
    for (; n < 120; n++) {
      list.scrollTop -= 400;
      await new Promise(requestAnimationFrame);
    }
    return (n * 1000) / (performance.now() - began);
  });
  check((await rows()) < 60, "nor while it scrolls");
  await page.evaluate(() => (document.querySelector(".list").scrollTop = 0));
  await page.waitForSelector("text=Message 0.");
  console.log(`frames a second while scrolling through 2 000 messages: ${frames.toFixed(0)}`);
}

// Both lines give the answer again, typed into a shell.
async function reproduce({ page, program }) {
  const sent = [];
  page.on("response", (response) => response.url().endsWith("/v1/chat/completions") && sent.push(response.text()));
  await page.click("[title=Settings]");
  await page.fill("text=System text", "You like the dog's house.");
  await page.fill("#number-repetition_penalty", "1.1");
  await page.keyboard.press("Tab");
  await page.click("[aria-label='Close the settings']");
  await say(page, "Tell me a story about 'a cat' & \"a dog\"");
  await ended(page, 1);
  const chunks = (await sent[0]).split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  await page.click("[title=Reproduce]");
  const [command, curl] = await page.locator("dialog pre").allInnerTexts();
  const run = (line) => spawnSync("sh", ["-c", line], { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });
  const told = run(command.replace(/^candor/, resolve(program)));
  check(told.stdout.trim() === text.trim(), `candor run says it again: ${told.stdout}${told.stderr} / ${text}`);
  const fetched = run(`KEY=none; ${curl}`);
  check(JSON.parse(fetched.stdout).choices[0].message.content === text, `and so does curl: ${fetched.stdout}${fetched.stderr}`);
}

// The types of web/src/api are those of the server's replies, member by member: the compiler compares them.
async function types({ url }) {
  const chat = { messages: [{ role: "user", content: "Tell me a story" }], max_tokens: 4, temperature: 0.7, top_k: 4, explain: true };
  await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(chat), headers: { "content-type": "application/json" } });
  const reply = await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(chat), headers: { "content-type": "application/json" } })).json();
  const said = {
    Parameters: await (await fetch(`${url}/v1/ui/parameters`)).json(),
    Live: await (await fetch(`${url}/v1/ui/live`)).json(),
    Timings: reply.timings,
    Explanation: reply.choices[0].explain[0],
  };
  const folder = mkdtempSync(join(tmpdir(), "candor-types-"));
  const types = join(root, "web/src/api/types");
  const lines = Object.entries(said).map(([name, value]) => `export const a${name}: import("${types}").${name} = ${JSON.stringify(value)};`);
  writeFileSync(join(folder, "said.ts"), lines.join("\n"));
  const compiler = need("typescript/package.json") && join(root, "web/node_modules/typescript/bin/tsc");
  const result = spawnSync(process.execPath, [compiler, "--noEmit", "--strict", "--moduleResolution", "bundler", "--module", "esnext", join(folder, "said.ts")]);
  rmSync(folder, { recursive: true });
  check(result.status === 0, `the types are the server's: ${result.stdout}`);
}

const parts = { chat: [chat, slow], why: [why, []], compare: [compare, []], machine: [machine, []], power: [power, []], fields: [fields, []], timeline: [timeline, []], axe: [axe, ["--speculate", "ngram"]], axe_late: [axe_late, []], origin: [origin, []], long: [long, []], reproduce: [reproduce, []], types: [types, ["--speculate", "ngram"]], reading: [reading, []], images: [images, []], looked: [(tools) => looked({ ...tools, examine }), []], files: [files, []], formulas: [formulas, []], find: [find, []], ...badCases };
const [part, program] = process.argv.slice(2);
const [act, options] = parts[part];
const browser = await openBrowser();
const server = await serve(program, options);
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await showNewest(page, server.url);
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(server.url);
  await page.waitForSelector("#composer");
  await act({ page, browser, program, server, url: server.url });
  check(faults.length === 0, `the page's program has no fault: ${faults.join("; ")}`);
  console.log(`${part}: passed`);
} finally {
  await browser.close();
  await server.stop();
}
