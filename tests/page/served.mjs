// A server and a browser for the tests of the page. Exit code 77 where what they need is absent: the test counts as
// skipped.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const skipped = 77;

export function need(name) {
  try {
    return createRequire(join(root, "web/package.json"))(name);
  } catch {
    console.log(`skipped: ${name} is not installed (sh scripts/setup_page.sh)`);
    process.exit(skipped);
  }
}

const browsers = [process.env.CANDOR_BROWSER, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function openBrowser() {
  const { chromium } = need("playwright-core");
  const executablePath = browsers.find((path) => path && existsSync(path));
  if (!executablePath) {
    console.log("skipped: there is no chromium (sh scripts/setup_page.sh)");
    process.exit(skipped);
  }
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

// Resolves once it takes requests: {url, stop()}. Ends with this program, also where that skips.
export function serve(program, options = [], model = "models/pocket/pocket-q8_0.gguf") {
  const child = spawn(resolve(program), ["serve", "-m", model, "--port", "0", "--model-id", "pocket", "--log-level", "off", ...options], { cwd: root });
  process.on("exit", () => child.kill());
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const found = /candor serves .* at (http:\/\/[\d.]+:\d+)/.exec(said);
      const stop = (signal = "SIGTERM") => {
        child.kill(signal);
        return over;
      };
      if (found) resolve({ url: found[1], stop });
    });
    const over = new Promise((done) => child.on("exit", done));
    child.on("exit", () => reject(new Error(`the server did not start: ${said}`)));
  });
}

// CANDOR_PAGE_NEWEST=1, for work on the page: web/dist as it is now, which the program may not have yet.
export async function showNewest(page, url) {
  if (!process.env.CANDOR_PAGE_NEWEST) return;
  await page.route(`${url}/ui/*`, (route) => {
    const name = route.request().url().split("/").pop();
    const body = gunzipSync(readFileSync(join(root, "web/dist", `${name}.gz`)));
    return route.fulfill({ body, contentType: name.endsWith(".css") ? "text/css" : "text/javascript" });
  });
}

// Answers so long that there is time to break them off. Loads the page anew.
export async function askForLongAnswers(page) {
  await page.evaluate(() => {
    const settings = JSON.parse(localStorage.getItem("candor.settings"));
    localStorage.setItem("candor.settings", JSON.stringify({ ...settings, numbers: { ...settings.numbers, min_tokens: 400 } }));
  });
  await page.reload();
}

export function check(condition, words) {
  if (!condition) throw new Error(`expected: ${words}`);
}
