// Makes web/dist of web/src: one page, one script, one style, and the scripts that are loaded late, each compressed. The same sources give the same files.
//   node build.mjs           writes dist
//   node build.mjs --check   says whether dist is what the sources give; exit code 1 where it is not
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const most = 150 * 1000; // bytes on the wire, of what every visitor loads
const late = { "math.js": 65 * 1000, "pdf.js": 560 * 1000 }; // and of what is loaded with the first formula, the first PDF

// The names of sampling's numbers, as the engine's one table has them.
function samplingNames() {
  const table = readFileSync(join(here, "../include/candor/sampling_table.h"), "utf8");
  const names = [...table.matchAll(/\{\.name = "(\w+)"/g)].map((match) => match[1]);
  const union = names.map((name) => `\n  | "${name}"`).join("");
  return `// Made by build.mjs of include/candor/sampling_table.h.\nexport type SamplingName =${union};\n`;
}

const options = {
  absWorkingDir: here,
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "error",
};

async function bundle() {
  const result = await build({ ...options, entryPoints: { app: "src/main.tsx" }, format: "iife" });
  const lateOnes = await build({ ...options, entryPoints: { math: "src/late/math.ts", pdf: "src/late/pdf.ts" }, format: "esm" });
  const files = { "index.html": readFileSync(join(here, "src/index.html")) };
  for (const file of result.outputFiles) files[file.path.endsWith(".css") ? "app.css" : "app.js"] = Buffer.from(file.contents);
  for (const file of lateOnes.outputFiles) files[basename(file.path)] = Buffer.from(file.contents);
  return files;
}

const namesFile = join(here, "src/api/sampling_names.ts");
const isCheck = process.argv.includes("--check");
if (!isCheck) writeFileSync(namesFile, samplingNames());
const files = await bundle();
let wrong = isCheck && readFileSync(namesFile, "utf8") !== samplingNames() ? ["src/api/sampling_names.ts"] : [];
let total = 0;
mkdirSync(join(here, "dist"), { recursive: true });
for (const [name, bytes] of Object.entries(files)) {
  const path = join(here, "dist", `${name}.gz`);
  if (!isCheck) writeFileSync(path, gzipSync(bytes, { level: 9 }));
  const kept = readFileSync(path);
  if (late[name]) console.log(`${name}, loaded late: ${kept.length} bytes on the wire (at most ${late[name]})`);
  else total += kept.length;
  if (kept.length > (late[name] ?? most)) wrong.push(`dist/${name}.gz: too large`);
  if (!gunzipSync(kept).equals(bytes)) wrong.push(`dist/${name}.gz`);
}
console.log(`page: ${total} bytes on the wire (at most ${most})`);
if (total > most) wrong.push("dist: too large");
if (wrong.length > 0) {
  console.error(`not what the sources give: ${wrong.join(", ")}; run: npm ci && npm run build, in web/`);
  process.exit(1);
}
