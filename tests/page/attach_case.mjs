// Files that go with a message, formulas, and finding conversations again. The model of these tests takes no images: where
// one is to, the page is told so, and the request that it sends is caught.
import { check } from "./served.mjs";

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR42mM4ESoNRAwQCgAk4gThjiDVygAAAABJRU5ErkJggg==";
const png = (name) => ({ name, mimeType: "image/png", buffer: Buffer.from(dot, "base64") });
const text = (name, words, mimeType = "text/plain") => ({ name, mimeType, buffer: Buffer.from(words) });

// A PDF of one page that says these words.
export function pdf(words) {
  const stream = `BT /F1 18 Tf 40 700 Td (${words}) Tj ET`;
  const objects = ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
    `<</Length ${stream.length}>>\nstream\n${stream}\nendstream`, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, i) => {
    const at = file.length;
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  return `${file}xref\n0 6\n0000000000 65535 f \n${table}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n${file.length}\n%%EOF\n`;
}

export async function tellItTakesImages(page) {
  await page.route("**/v1/ui/parameters", async (route) => {
    const parameters = await (await route.fetch()).json();
    parameters.model.images = true;
    await route.fulfill({ json: parameters });
  });
}

// The bodies of chats, answered here.
export async function catchChats(page) {
  const bodies = [];
  await page.route("**/v1/chat/completions", async (route) => {
    bodies.push(route.request().postDataJSON());
    const chunks = [{ choices: [{ index: 0, delta: { content: "Seen." } }] }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }];
    await route.fulfill({ contentType: "text/event-stream", body: `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n` });
  });
  return bodies;
}

// "drop" on the page, or "paste" into the message, as the browser says it.
export async function give(page, how, files) {
  const plain = files.map(({ name, mimeType, buffer }) => ({ name, mimeType, base64: buffer.toString("base64") }));
  await page.evaluate(([how, files]) => {
    const data = new DataTransfer();
    for (const { name, mimeType, base64 } of files) data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type: mimeType }));
    const target = document.getElementById("composer");
    if (how === "paste") return target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    for (const name of ["dragenter", "dragover"]) document.body.dispatchEvent(new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true }));
    globalThis.sawPlace = new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
      done(document.querySelector(".drop-place") !== null);
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    })));
  }, [how, plain]);
  if (how === "drop") check(await page.evaluate(() => globalThis.sawPlace), "it is shown where to drop");
}

const choose = async (page, label, files) => {
  const opened = page.waitForEvent("filechooser");
  await page.click(`[aria-label^='${label}']`);
  await (await opened).setFiles(files);
};
const n_attached = (page, n) => page.waitForFunction((n) => document.querySelectorAll(".composer .attachments li").length === n, n);
const notice = (page) => page.waitForSelector(".composer .notice").then((element) => element.innerText());
const answered = (page, n) => page.waitForFunction((n) => document.querySelectorAll(".message.is-assistant footer").length === n, n);

// A picture of that size, in two colours.
export async function largePng(page, width, height) {
  const url = await page.evaluate(([width, height]) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    context.fillStyle = "#c8551b";
    context.fillRect(0, 0, width / 2, height);
    return canvas.toDataURL("image/png");
  }, [width, height]);
  return { name: "wide.png", mimeType: "image/png", buffer: Buffer.from(url.split(",")[1], "base64") };
}

const sizeOf = (page, url) => page.evaluate(async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  return [image.naturalWidth, image.naturalHeight];
}, url);

export async function images({ page }) {
  check(/takes no images/.test(await page.getAttribute("[aria-label^='Attach images']", "aria-label")), "a model that takes none: the button says so");
  await give(page, "drop", [png("dropped.png")]);
  check(/takes no images/.test(await notice(page)), "and so does a drop");
  await page.focus("[aria-label^='Attach images']");
  await page.keyboard.press("Enter");
  check((await page.locator(".composer .attachments").count()) === 0, "nothing is attached");
  await tellItTakesImages(page);
  const bodies = await catchChats(page);
  await page.reload();
  await page.waitForSelector("[aria-label='Attach images']:not([aria-disabled])");
  await give(page, "drop", [png("dropped.png")]);
  await n_attached(page, 1);
  await give(page, "paste", [png("pasted.png")]);
  await n_attached(page, 2);
  await choose(page, "Attach images", [png("chosen.png"), await largePng(page, 5000, 50)]);
  await n_attached(page, 4);
  check(/scaled down from 5000/.test(await page.locator(".composer .scaled").innerText()), "it is said that an image was scaled down");
  await page.click("[aria-label='Remove chosen.png']");
  await n_attached(page, 3);
  for (const [name, words] of [["drawing.svg", "SVG images are not taken"], ["photo.heic", "HEIC images are not taken"]]) {
    await give(page, "drop", [text(name, "<svg/>", "")]);
    await page.waitForSelector(`.composer .notice >> text=${words}`);
  }
  await give(page, "drop", [{ name: "broken.png", mimeType: "image/png", buffer: Buffer.from(dot, "base64").subarray(0, 40) }]);
  await page.waitForSelector(".composer .notice >> text=damaged");
  await page.fill("#composer", "What is this?");
  await page.keyboard.press("Enter");
  await answered(page, 1);
  const parts = bodies[0].messages[0].content;
  check(parts.length === 4 && parts[0].type === "text" && parts[0].text === "What is this?", `text first: ${JSON.stringify(parts).slice(0, 200)}`);
  check(parts[1].type === "image_url" && parts[1].image_url.url === `data:image/png;base64,${dot}`, "an image that fits is sent as it is");
  check(String(await sizeOf(page, parts[3].image_url.url)) === "4096,41", "a large one is scaled down");
  check((await page.locator(".composer .attachments").count()) === 0, "what was sent is attached no more");
  await page.waitForTimeout(600); // the browser's store is written
  await page.reload();
  await page.waitForSelector(".message .thumb img >> nth=2");
  const kept = await page.evaluate(() => new Promise((done) => {
    const request = indexedDB.open("candor");
    request.onsuccess = () => {
      const all = request.result.transaction("conversations").objectStore("conversations").getAll();
      all.onsuccess = () => done(Object.values(all.result[0].nodes).map((node) => JSON.stringify(node.body ?? null)).join());
    };
  }));
  check(kept.includes("attachment:") && !kept.includes("base64"), "the request that is kept has ids in place of data");
  await page.fill("#composer", "And now?");
  await page.keyboard.press("Enter");
  await answered(page, 2);
  check(bodies[1].messages[0].content[1].image_url.url.endsWith(dot), "images outlive a reload, and go with every later request");
  await page.click("[aria-label='Show dropped.png']");
  await page.waitForSelector("dialog img[src^='data:image/png']");
  await page.keyboard.press("Escape");
  const saved = page.waitForEvent("download");
  await page.click("[title='Export all conversations']");
  const path = await (await saved).path();
  await page.setInputFiles(".sidebar input[type=file]", path);
  await page.waitForFunction(() => document.querySelectorAll(".conversations li").length === 2);
  await page.waitForSelector(".message .thumb img >> nth=2");
  await page.fill("#composer", "Once more");
  await page.keyboard.press("Enter");
  await answered(page, 3);
  check(bodies[2].messages[0].content[1].image_url.url.endsWith(dot), "and an export and import");
}

export async function files({ page }) {
  const asked = [];
  page.on("request", (request) => asked.push(request.url().split("/").pop()));
  const bodies = await catchChats(page);
  await choose(page, "Attach texts", [text("notes.md", "# Apples\n```js\n1\n```\n"), text("data.csv", "a,b\n1,2\n")]);
  await n_attached(page, 2);
  check((await page.locator(".composer .file").first().innerText()).includes("notes.md"), "the name is shown");
  await page.waitForSelector(".composer-foot >> text=/\\d tokens of a context of/");
  await give(page, "drop", [{ name: "program.bin", mimeType: "", buffer: Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 0xff]) }]);
  check(/program\.bin is no text/.test(await notice(page)), "a binary file is refused");
  await give(page, "paste", [text("long.txt", "All the words of a long text. ".repeat(20_000))]);
  await n_attached(page, 3);
  await page.waitForSelector(".composer-foot .is-over >> text=/ % of it fits the context/");
  await page.click("[aria-label='Remove long.txt']");
  check(!asked.includes("pdf.js"), "what reads PDFs is not loaded before there is one");
  await give(page, "drop", [{ name: "paper.pdf", mimeType: "application/pdf", buffer: Buffer.from(pdf("A paper about ships")) }]);
  await n_attached(page, 3);
  check(asked.includes("pdf.js"), "and then it is");
  await give(page, "drop", [text("broken.pdf", "%PDF-1.4\nnothing", "application/pdf")]);
  check(/broken\.pdf cannot be read as a PDF/.test(await notice(page)), "a broken one is refused");
  await page.keyboard.press("Enter");
  await page.focus("#composer");
  await page.keyboard.press("Enter");
  await answered(page, 1);
  const said = bodies[0].messages[0].content;
  check(said.startsWith("File: notes.md\n````md\n# Apples\n```js\n1\n```\n````\n\nFile: data.csv\n```csv\na,b\n1,2\n```\n\nFile: paper.pdf\n"), `files are set apart: ${said}`);
  check(said.includes("A paper about ships"), "a PDF's text is there");
  check((await page.locator(".message .file b").allInnerTexts()).join() === "notes.md,data.csv,paper.pdf", "the message shows its files");
  await page.hover(".message.is-user");
  await page.click(".message.is-user [title='Edit, as a new branch']");
  await page.fill("[aria-label='Edit the message']", "Shorter");
  await page.click("text=Save as a branch");
  await page.waitForFunction(() => document.querySelector(".message.is-user .branches")?.innerText.replace(/\s/g, "") === "2/2");
  check(bodies[1].messages[0].content.endsWith("\n\nShorter") && bodies[1].messages[0].content.startsWith("File: notes.md"), "an edited message keeps its files");
}

export const plainSettings = { system: "", preset: "", numbers: {}, seed: null, maxTokens: null, stop: [], structure: { kind: "none", text: "" }, tools: "", beams: 0, model: "", explains: false };

// Brings conversations in: each a title and its messages in turn.
export async function bringIn(page, talks) {
  const conversations = talks.map(([title, ...texts], k) => {
    const nodes = Object.fromEntries(texts.map((content, i) => [`n${k}_${i}`, { id: `n${k}_${i}`, parent: i ? `n${k}_${i - 1}` : "", role: i % 2 ? "assistant" : "user", content,
      children: i + 1 < texts.length ? [`n${k}_${i + 1}`] : [], chosen: 0, at: 0, state: "done" }]));
    return { id: `c${k}`, title, at: k, settings: plainSettings, nodes, roots: [`n${k}_0`], chosen: 0 };
  });
  await page.setInputFiles(".sidebar input[type=file]", { name: "talks.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ candor: 1, conversations })) });
}

export const mathematics = `Euler's identity is $e^{i\\pi} + 1 = 0$. The roots of $ax^2 + bx + c = 0$ are

\\[ x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}. \\]

A matrix and a sum:

$$
A = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}, \\qquad \\sum_{k=1}^{n} k = \\frac{n(n+1)}{2}
$$

- \\(\\vec{v} \\cdot \\vec{w} = |v||w|\\cos\\theta\\)
- It costs $5 and $10.
`;

export async function formulas({ page }) {
  const asked = [];
  const refused = [];
  page.on("request", (request) => asked.push(request.url().split("/").pop()));
  page.on("console", (message) => /Content Security Policy|Trusted/i.test(message.text()) && refused.push(message.text()));
  const evil = [String.raw`$\href{javascript:window.hacked=1}{x}$`, String.raw`$\htmlId{app}{x}$`, String.raw`$\htmlStyle{position:fixed}{y}$`, String.raw`$\includegraphics{https://example.com/x.png}$`,
    String.raw`$\text{<img src=x onerror=window.hacked=2>}$`, String.raw`$<script>window.hacked=3</script>$`, String.raw`$\rule{9999em}{9999em}$`, String.raw`$\pmb{w} \color{#ff0000} z$`];
  await bringIn(page, [["Plain", "a", "no formula, $5 and $10"]]);
  await page.waitForSelector(".message.is-assistant .markdown p");
  check(!asked.includes("math.js"), "what shows formulas is not loaded before there is one");
  await bringIn(page, [["Mathematics", "a", mathematics, "b", `Broken: $\\frac{1}{$ and $\\nonsense{x}$.\n\n${evil.join("\n\n")}`]]);
  await page.waitForSelector(".markdown math");
  await page.waitForFunction(() => document.querySelectorAll(".markdown math").length >= 6);
  const shown = page.locator(".message.is-assistant").first();
  check((await shown.locator("math").count()) === 5, `five formulas, not ${await shown.locator("math").count()}`);
  check((await shown.locator("math mfrac").count()) === 2 && (await shown.locator("math mtable mtd").count()) >= 4, "fractions and a matrix");
  check((await shown.innerText()).includes("It costs $5 and $10."), "prices are no formulas");
  const frac = await shown.locator("math mfrac").first().evaluate((element) => [...element.children].map((part) => part.getBoundingClientRect().top));
  check(frac[1] > frac[0], "the denominator is below");
  const other = page.locator(".message.is-assistant").nth(1);
  const words = await other.innerText();
  for (const source of ["$\\frac{1}{$", "$\\nonsense{x}$", "$\\href{javascript", "$\\htmlId{app}{x}$", "$\\includegraphics{"]) check(words.includes(source), `the source is shown: ${source} in ${words}`);
  await page.waitForTimeout(300);
  check((await page.evaluate(() => window.hacked)) === undefined, "nothing is executed");
  check((await page.locator(".markdown :is(img, script, a, iframe, [id], [href], [src])").count()) === 0, "nothing is followed or named");
  const widest = await other.evaluate((element) => [...element.querySelectorAll("math, math *")].map((part) => part.getBoundingClientRect().height).reduce((a, b) => Math.max(a, b), 0));
  check(widest < 1200, `sizes are bounded: ${widest} px`);
  check((await other.locator("math mi", { hasText: "z" }).last().evaluate((element) => getComputedStyle(element).color)) === "rgb(255, 0, 0)", "colours are kept");
  check(refused.length === 0, `the policy has nothing to refuse: ${refused.join("; ")}`);
  check(asked.every((name) => name !== "x.png" && name !== "x"), "nothing is asked");
}

export async function find({ page }) {
  await bringIn(page, [["Rain", "A poem about the sea", "Waves and foam"], ["Ships", "Which ship is the largest?", ...Array.from({ length: 60 }, (_, i) => `Line ${i}. ${"Words that fill. ".repeat(20)}${i === 20 ? "A lighthouse stands here." : ""}`)], ["Bread", "Flour", "Water"]]);
  const titles = () => page.locator(".conversation").evaluateAll((all) => all.map((one) => one.firstChild.textContent));
  await page.waitForSelector(".conversation >> nth=2");
  check((await titles()).join() === "Rain,Ships,Bread", `as they came: ${await titles()}`);
  await page.hover(".conversations li >> nth=2");
  await page.click("[title='Pin Bread']");
  await page.waitForSelector(".conversations h2 >> text=Pinned");
  check((await titles()).join() === "Bread,Rain,Ships", "what is pinned stands first");
  await page.waitForTimeout(600); // the browser's store is written
  await page.reload();
  await page.waitForSelector("[title='Unpin Bread']");
  check((await titles())[0] === "Bread", "also after a reload");
  await page.keyboard.press("Control+Shift+F");
  await page.waitForFunction(() => document.activeElement.id === "search");
  await page.keyboard.type("LIGHTHOUSE stands");
  await page.waitForSelector(".conversation mark >> text=lighthouse stands");
  check((await titles()).join() === "Ships", "texts are searched");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => {
    const row = [...document.querySelectorAll(".list-row")].find((one) => one.innerText.includes("A lighthouse stands here."));
    const list = document.querySelector(".list")?.getBoundingClientRect();
    return row && row.getBoundingClientRect().top < list.bottom - 40 && row.getBoundingClientRect().bottom > list.top + 40;
  });
  await page.focus("#search");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 3);
  await page.fill("#search", "nowhere at all");
  await page.waitForSelector("text=None found");
  await page.fill("#search", "");
  await page.focus("#composer");
  await page.keyboard.type("?");
  check((await page.locator("dialog").count()) === 0 && (await page.inputValue("#composer")) === "?", "a question mark that is typed is one");
  await page.focus(".list");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog >> text=Search the conversations");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.click("[title='Keyboard shortcuts']");
  await page.waitForSelector("dialog >> text=A new conversation");
}
