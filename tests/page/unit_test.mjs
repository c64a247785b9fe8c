// The page's plain functions, without a browser: node unit_test.mjs. Exit code 77 where Node's packages are absent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { check, need, root } from "./served.mjs";

const folder = mkdtempSync(join(tmpdir(), "candor-unit-"));
const contents = `export * from "./src/ui/math_marks"; export * from "./src/store/files"; export * from "./src/store/search";
  export * from "./src/store/settings"; export { Marked } from "marked";`;
await need("esbuild").build({ stdin: { contents, resolveDir: join(root, "web") }, bundle: true, format: "esm", outfile: join(folder, "page.mjs"), logLevel: "error" });
const page = await import(pathToFileURL(join(folder, "page.mjs")));
rmSync(folder, { recursive: true });

const same = (value, expected, words) => check(JSON.stringify(value) === JSON.stringify(expected), `${words}: ${JSON.stringify(expected)}, and there is ${JSON.stringify(value)}`);

const marked = new page.Marked({ gfm: true, breaks: true });
marked.use(page.mathExtension);
// The formulas of a text, as they are taken from it; display ones between double brackets.
function formulas(text) {
  const found = [];
  marked.walkTokens(marked.lexer(text), (token) => {
    if (token.formula) found.push(token.formula.isDisplay ? `[[${token.formula.tex}]]` : token.formula.tex);
  });
  return found;
}

function mathematics() {
  same(formulas("Euler: $e^{i\\pi} + 1 = 0$, and $x$."), ["e^{i\\pi} + 1 = 0", "x"], "between dollars");
  same(formulas("So \\(a_1 * b_2\\) and \\[ \\sum_i x_i \\]"), ["a_1 * b_2", "[[\\sum_i x_i]]"], "between backslashes");
  same(formulas("Text:\n$$\nx = 1\n- y\n# z\n$$\nMore."), ["[[x = 1\n- y\n# z]]"], "lines of a formula are no Markdown");
  same(formulas("\\[\n\na = b\n\n\\]"), ["[[a = b]]"], "blank lines in brackets");
  same(formulas("- one: $a$\n- two:\n  $$b$$\n\n> $c$\n\n| x |\n|---|\n| $d$ |"), ["a", "[[b]]", "c", "d"], "in lists, quotations, tables");
  same(formulas("**bold $k$** and *$l$*"), ["k", "l"], "in emphasis");
  same(formulas("$\\text{costs \\$5}$"), ["\\text{costs \\$5}"], "a dollar inside is escaped");
  same(formulas("The number $5$ and $3x$ and $2 + 2 = 4$."), ["5", "3x", "2 + 2 = 4"], "numbers alone");
  for (const text of ["It costs $5 and $10.", "from $5 to $10 or US$7 and A$8", "between $5 and 10$", "$5-$10", "$HOME/$PATH and $HOME:$PATH", "a $ b $ c", "`$x$` and `\\(y\\)`",
    "```\n$$z$$\n```", "    $$z$$", "\\$x\\$", "costs $5\n\nand 6$", "$20k per year, $30k later", "pay $1,000 now and $2,000 later", "between $5 (net) and 10$"]) {
    same(formulas(text), [], `no formula in ${JSON.stringify(text)}`);
  }
}

// What a text that still grows shows: the source, character by character, and never half a formula.
function growing() {
  const whole = "Then \\[ a_1 * b * c_1 \\] and $$x_1 * y * z_1$$ end.";
  for (let n = 1; n <= whole.length; n++) {
    const html = marked.parse(whole.slice(0, n), { async: false });
    check(!html.includes("<em>"), `no emphasis in half a formula: ${html}`);
    const source = html.replace(/<[^>]*>/g, "").replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)).trim();
    const expected = whole.slice(0, n).trim();
    check(source === expected || (/\\[[(]?$|\$\$?$/.test(expected)), `the source is shown: ${expected} / ${source}`);
  }
  const evil = marked.parse("$<img src=x onerror=alert(1)>$ and \\(</span><script>1</script>\\)", { async: false });
  check(!/<(img|script)/.test(evil), `markup in a formula stays text: ${evil}`);
}

const bytes = (...parts) => Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...part].map((c) => c.charCodeAt(0)) : [part])));
const heic = bytes(0, 0, 0, 24, "ftypheic", 0, 0, 0, 0);

function kinds() {
  const bmp = new Uint8Array(64);
  bmp.set(bytes("BM"));
  bmp[14] = 40;
  bmp[26] = 1;
  const pictures = [[bytes(0x89, "PNG\r\n", 0x1a, "\n"), "image/png"], [bytes(0xff, 0xd8, 0xff, 0xe0), "image/jpeg"], [bytes("GIF89a"), "image/gif"],
    [bytes("RIFF", 0, 0, 0, 0, "WEBPVP8 "), "image/webp"], [bmp, "image/bmp"]];
  for (const [head, type] of pictures) same(page.kindOf("x.txt", "", head), { is: "image", type }, "its bytes say what it is");
  same(page.kindOf("x.pdf", "", bytes("%PDF-1.7")), { is: "pdf" }, "a PDF");
  same(page.kindOf("x.md", "text/markdown", bytes("BMW is a car")), { is: "text" }, "a text");
  for (const [name, type, head, word] of [["a.svg", "", bytes("<svg"), "SVG"], ["a.xml", "image/svg+xml", bytes("<svg"), "SVG"], ["a.heic", "", bytes(0), "HEIC"], ["a.jpg", "", heic, "HEIC"],
    ["a.bin", "image/x-icon", bytes(0, 0, 1, 0), "X-ICON"], ["a.tif", "", bytes("II*", 0), "TIFF"]]) {
    const kind = page.kindOf(name, type, head);
    check(kind.is === "refused" && kind.why.includes(`${name}: ${word} images`) && !kind.why.includes("\n"), `refused by name: ${JSON.stringify(kind)}`);
  }
  same(page.decodeText(bytes("a\r\nb")), "a\nb", "line ends");
  same(page.decodeText(Uint8Array.of(0xff, 0xfe, 0x41, 0, 0x42, 0)), "AB", "UTF-16 with its mark");
  for (const binary of [bytes("a", 0, "b"), bytes(0x80, 0x81), bytes("\x7fELF", 2, 1, 1, 0)]) same(page.decodeText(binary), null, "no text");
  same(page.scaledSize(8192, 2048), { width: 4096, height: 1024 }, "the longer side decides");
  same(page.scaledSize(4096, 10), { width: 4096, height: 10 }, "nothing grows or shrinks that fits");
}

const file = (name, text) => ({ id: name, kind: "text", name, size: text.length, text });
const image = { id: "i1", kind: "image", name: "cat.png", size: 1, width: 1, height: 1, thumb: "", note: "" };

function messages() {
  same(page.messageText("What is it?", [file("a.json", "{}")]), "File: a.json\n```json\n{}\n```\n\nWhat is it?", "a file, then the text");
  same(page.messageText("", [file("a.txt", "x\n")]), "File: a.txt\n```\nx\n```", "a file alone");
  check(page.messageText("", [file("b.md", "````\ninner\n````")]).includes("`````md\n````\ninner\n````\n`````"), "a fence that the text cannot end");
  const user = (content, attachments) => ({ id: "n", parent: "", role: "user", content, children: [], chosen: 0, at: 0, state: "done", attachments });
  same(page.messagesOf([user("hi")], ""), [{ role: "user", content: "hi" }], "text alone is a string");
  same(page.messagesOf([user("What is this?", [image])], "S")[1].content,
    [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: "attachment:i1" } }], "text, then images");
  same(page.messagesOf([user("", [image])], "")[0].content, [{ type: "image_url", image_url: { url: "attachment:i1" } }], "an image alone");
}

function searching() {
  const talk = (id, title, texts, isPinned) => ({ id, title, at: 0, settings: {}, roots: [], chosen: 0, isPinned,
    nodes: Object.fromEntries(texts.map((content, i) => [`${id}${i}`, { id: `${id}${i}`, content, children: [], attachments: i === 1 ? [file("notes.csv", "apples,pears")] : undefined }])) });
  const all = [talk("a", "Rain", ["A poem about the sea", "Waves\nand foam"]), talk("b", "Ships", ["The SEA is deep"], true), talk("c", "Bread", ["flour"])];
  const ids = (query) => page.search(all, query).map((one) => one.conversation.id);
  same(ids("sea"), ["b", "a"], "whatever the case, pinned first");
  same(ids("poem rain"), ["a"], "all words, in title or texts");
  same(ids("poem bread"), [], "not in two conversations");
  same(ids("pears"), ["a"], "in the text of a file");
  same(ids("notes.csv"), ["a"], "and its name");
  same(page.wordsOf("  "), [], "blanks are no query");
  const [one] = page.search(all, "about the");
  same([one.node, one.words[1], one.words[0]], ["a0", "about the", "A poem "], "the place is shown");
  const [long] = page.search([talk("d", "Long", ["A lighthouse keeper who lives far away beside the harbour wall"])], "harbour");
  same(long.words, ["…far away beside the ", "harbour", " wall"], "whole words around it");
  same(page.search(all, "bread")[0].words, null, "a title shows itself");
  same(page.inOrder(all).map((talk) => talk.id), ["b", "a", "c"], "pinned first");
}

// Where a token looked is asked for with images alone, and of a server that knows it.
function explanations() {
  const about = { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "attachment:i1" } }] }] };
  same(page.explaining(about, { attention: true }), { explain: true, attention: true }, "with an image");
  same(page.explaining(about, { attention: false }), { explain: true }, "over ranks");
  same(page.explaining({ messages: [{ role: "user", content: "hi" }] }, { attention: true }), { explain: true }, "without images");
}

for (const part of [mathematics, growing, kinds, messages, searching, explanations]) part();
console.log("unit: passed");
