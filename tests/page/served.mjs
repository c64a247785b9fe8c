// A server and a browser for the tests of the page. Exit code 77 where what they need is absent: the test counts as
// skipped.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

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

// Resolves once it takes requests: {url, stop()}.
export function serve(program, options = [], model = "models/pocket/pocket-q8_0.gguf") {
  const child = spawn(program, ["serve", "-m", join(root, model), "--port", "0", "--model-id", "pocket", "--log-level", "off", ...options]);
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const found = /candor serves .* at (http:\/\/[\d.]+:\d+)/.exec(said);
      if (found) resolve({ url: found[1], stop: (signal = "SIGTERM") => new Promise((over) => (child.on("exit", over), child.kill(signal))) });
    });
    child.on("exit", () => reject(new Error(`the server did not start: ${said}`)));
  });
}

export function check(condition, words) {
  if (!condition) throw new Error(`expected: ${words}`);
}
