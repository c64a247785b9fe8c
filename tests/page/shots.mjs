// Pictures of each view, light and dark, wide and narrow, and those that docs keeps: node tests/page/shots.mjs PROGRAM FOLDER [explain | VIEW,VIEW].
// FOLDER gets every picture, and docs/ what stands there: page-VIEW.jpg, page/VIEW.jpg (all four forms), explain.jpg (alone, with "explain"). With names of views: those alone.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser, root, serve, showNewest } from "./served.mjs";
import { views } from "./views.mjs";

const [program, folder, only] = process.argv.slice(2);
const names = only ? only.split(",").filter((name) => views[name]) : Object.keys(views);
const browser = await openBrowser();
const server = await serve(program, ["--speculate", "ngram"]);
const kept = ["why-wide-light", "machine-wide-dark", "compare-wide-light"]; // alone, as docs has them
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
const themes = ["light", "dark"];

// For some ten seconds.
async function load(url) {
  const until = Date.now() + 10_000;
  const ask = (i) => fetch(`${url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: `Once upon a time ${i}`, max_tokens: 300, seed: i, ignore_eos: true }) });
  for (let round = 0; Date.now() < until; round++) await Promise.all([1, 2, 3, 4, 5, 6].map((i) => ask(round * 10 + i)));
}

async function shoot(size, theme) {
  const page = await browser.newPage({ viewport: sizes[size], colorScheme: theme });
  await showNewest(page, server.url);
  page.on("pageerror", (error) => console.log("page error:", error.message));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && console.log("console:", message.text()));
  for (const name of names) {
    await views[name](page, server.url);
    const isOver = name === "machine" ? load(server.url) : null;
    if (isOver) await page.waitForTimeout(8000);
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(folder, `${name}-${size}-${theme}.png`) });
    if (kept.includes(`${name}-${size}-${theme}`)) await page.screenshot({ path: join(root, `docs/page-${name}.jpg`), type: "jpeg", quality: 78 });
    await isOver;
    await page.goto("about:blank");
    await page.goto(server.url);
    await page.evaluate(() => (localStorage.clear(), indexedDB.deleteDatabase("candor")));
  }
  await page.close();
}

const image = (path) => `data:image/png;base64,${readFileSync(path).toString("base64")}`;

// The four forms of a view in one picture.
async function join4(name) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 860 } });
  const pictures = themes.flatMap((theme) => ["wide", "narrow"].map((size) => `<img class="${size}" src="${image(join(folder, `${name}-${size}-${theme}.png`))}">`));
  await page.setContent(`<!doctype html><style>body{margin:10px;display:grid;grid-template-columns:auto auto;gap:10px;width:max-content;background:#888}img{height:410px}</style>${pictures.join("")}`);
  await page.locator("body").screenshot({ path: join(root, `docs/page/${name}.jpg`), type: "jpeg", quality: 74 });
  await page.close();
}

// What a terminal of 80 columns shows, in its colours.
async function explain() {
  const line = `${program} explain "The little dog found a" -n 3 --seed 4 --temperature 0.9 --top-k 6 --top-p 0.9`;
  const { stdout } = spawnSync("script", ["-qec", line, "/dev/null"], { encoding: "utf8", env: { ...process.env, COLUMNS: "80" } });
  const lines = stdout.replaceAll("\r", "").split("\n");
  const first = Math.max(0, lines.findIndex((text) => / token 1\b/.test(text)));
  const escaped = (first > 0 ? ["...", ...lines.slice(first)] : lines).join("\n").replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const coloured = escaped.replace(/\x1b\[0?m/g, "</span>").replace(/\x1b\[([\d;]+)m/g, (_, codes) => `<span class="${codes.split(";").map((code) => `c${code}`).join(" ")}">`).replace(/\x1b\[[\dK?hl]*/g, "");
  const page = await browser.newPage({ viewport: { width: 860, height: 900 } });
  await page.setContent(`<!doctype html><style>body{margin:0;background:#15181c;color:#d8dce1;width:max-content}pre{margin:0;padding:18px 22px;font:14px/1.42 ui-monospace,"DejaVu Sans Mono",monospace}
    .c1{font-weight:700;color:#fff}.c2{color:#8d97a2}.c9{text-decoration:line-through}.c32{color:#6fce8d}.c33{color:#e0bd5c}.c36{color:#79c3d0}</style><pre><span class="c1">$ candor${line.slice(program.length)}</span>\n${coloured.split("\n").slice(0, 46).join("\n")}</pre>`);
  await page.locator("body").screenshot({ path: join(root, "docs/explain.jpg"), type: "jpeg", quality: 80 });
  await page.close();
}

try {
  for (const theme of themes) for (const size of Object.keys(sizes)) await shoot(size, theme);
  for (const name of names) await join4(name);
  if (!only || only === "explain") await explain();
} finally {
  await browser.close();
  await server.stop();
}
