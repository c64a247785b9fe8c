// Formulas in Markdown: $...$, $$...$$, \(...\), \[...\]. They come out as their source, in elements of their own, which
// are shown as formulas once they can be read (math.ts). What is not complete stays source.
import type { MarkedExtension, Tokens } from "marked";

interface Mark {
  open: string;
  close: string;
  isDisplay: boolean;
}
const marks: Mark[] = [
  { open: "$$", close: "$$", isDisplay: true },
  { open: "\\[", close: "\\]", isDisplay: true },
  { open: "\\(", close: "\\)", isDisplay: false },
];
const longest = 5_000; // characters

export interface Formula {
  raw: string;
  tex: string;
  isDisplay: boolean;
}

export function formulaOf(raw: string): Formula {
  const mark = marks.find((one) => raw.startsWith(one.open));
  const n = mark ? 2 : 1;
  return { raw, tex: raw.slice(n, -n).trim(), isDisplay: mark?.isDisplay ?? false };
}

// Where the mark closes that begins the text; -1 where it does not.
function closing(src: string, mark: Mark): number {
  const part = src.slice(0, longest);
  for (let at = part.indexOf(mark.close, 2); at >= 0; at = part.indexOf(mark.close, at + 1)) {
    let slashes = 0;
    while (part[at - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0 || mark.close[0] === "\\") return at + 2;
  }
  return -1;
}

// Prose between two dollars: "5 and 10", as in "between $5 and 10$".
const isProse = (tex: string) => /^[\d.,]+/.test(tex) && /[a-z]{2}/i.test(tex) && !/[\\^_=+<>{}*]/.test(tex);

// A dollar opens before something, closes after something, and no price is meant.
function dollars(src: string, before: string): string | null {
  if (/[\w$\\]/.test(before)) return null;
  const match = /^\$((?:[^$\\`\n]|\\[^\n]|\n(?!\s*\n))+?)\$(?![\w$])/.exec(src.slice(0, 1_000));
  if (!match || /^\s|\s$/.test(match[1]) || isProse(match[1])) return null;
  return match[0];
}

// The formula that begins a text; null where none does. `before` is the character in front of it.
export function formulaAt(src: string, before: string): Formula | null {
  const mark = marks.find((one) => src.startsWith(one.open));
  if (!mark) {
    const raw = src[0] === "$" ? dollars(src, before) : null;
    return raw ? formulaOf(raw) : null;
  }
  const end = closing(src, mark);
  const formula = end < 0 ? null : formulaOf(src.slice(0, end));
  return formula?.tex ? formula : null;
}

// A text that a formula begins and does not end yet: its source, which is no Markdown.
function unfinished(src: string): string | null {
  const isBegun = /^\\[[(]/.test(src) || /^\$\$(?=[\s\S]*[\\^_{}=])/.test(src);
  return isBegun ? /^[\s\S]*?(?=\n\s*\n|$)/.exec(src)![0] : null;
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const html = (tag: string, { raw }: { raw: string }) => `<${tag} class="math-source">${escaped(raw.trim())}</${tag}>`;

// A formula that stands alone on its lines.
function blockAt(src: string): Tokens.Generic | undefined {
  const indent = /^ {0,3}(?=\$\$|\\\[)/.exec(src)?.[0];
  if (indent === undefined) return undefined;
  const formula = formulaAt(src.slice(indent.length), "");
  const rest = formula && /^[ \t]*([.,;]?)[ \t]*(?:\n+|$)/.exec(src.slice(indent.length + formula.raw.length));
  if (formula && rest) return { type: "formulaBlock", raw: indent + formula.raw + rest[0], formula, after: rest[1] };
  const begun = formula ? null : unfinished(src.slice(indent.length));
  return begun ? { type: "formulaBegun", raw: indent + begun, text: begun } : undefined;
}

function inlineAt(src: string, before: string): Tokens.Generic | undefined {
  const formula = formulaAt(src, before);
  if (formula) return { type: "formula", raw: formula.raw, formula };
  const begun = unfinished(src);
  return begun ? { type: "formulaBegun", raw: begun, text: begun } : undefined;
}

const orNone = (at: number) => (at < 0 ? undefined : at);

export const mathExtension: MarkedExtension = {
  extensions: [
    {
      name: "formulaBlock",
      level: "block",
      start: (src) => orNone(src.search(/\n {0,3}(?:\$\$|\\\[)/) + 1 || -1),
      tokenizer: (src) => blockAt(src),
      renderer: (token) => html("div", token.formula) + (token.after ? `<p>${token.after}</p>` : ""),
    },
    {
      name: "formula",
      level: "inline",
      start: (src) => orNone(src.search(/\$|\\[([]/)),
      tokenizer: (src, tokens) => inlineAt(src, tokens.at(-1)?.raw.at(-1) ?? ""),
      renderer: (token) => html("span", token.formula),
    },
    { name: "formulaBegun", renderer: (token) => escaped(token.text).replaceAll("\n", "<br>") },
  ],
};
