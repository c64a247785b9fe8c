// Text of a model as markup: marked reads it, DOMPurify lets through what is harmless, highlight.js colours code, math.ts
// shows formulas. Nothing that is not sanitized reaches the page: its policy (Trusted Types) refuses it.
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import { Marked } from "marked";
import { useLayoutEffect, useRef } from "preact/hooks";
import { showFormulas } from "./math";
import { mathExtension } from "./math_marks";
import { copyText } from "./parts";

const languages = { bash, cpp, css, java, javascript, json, python, rust, sql, typescript, xml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
hljs.registerAliases(["c", "h", "hpp"], { languageName: "cpp" });
hljs.registerAliases(["sh", "shell", "console", "zsh"], { languageName: "bash" });

const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const mostHighlighted = 50_000;

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    code({ text, lang }) {
      const name = (lang ?? "").split(/\s/)[0];
      const isKnown = hljs.getLanguage(name) && text.length < mostHighlighted;
      const inner = isKnown ? hljs.highlight(text, { language: name, ignoreIllegals: true }).value : escaped(text);
      return `<div class="code"><div class="code-head"><span>${escaped(name || "text")}</span>` +
        `<button type="button" class="copy-code">Copy</button></div><pre tabindex="0"><code>${inner}</code></pre></div>`;
    },
    html: ({ text }) => escaped(text), // shown, not followed
  },
});

marked.use(mathExtension);

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "strong", "em", "del", "code", "pre",
    "a", "table", "thead", "tbody", "tr", "th", "td", "span", "div", "button", "input"],
  ALLOWED_ATTR: ["href", "title", "class", "type", "checked", "disabled", "start", "align", "tabindex", "rel", "target"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_TRUSTED_TYPE: true,
} as const;

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

const cache = new Map<string, TrustedHTML | string>();
const mostCached = 200;
export const mostMarkdown = 100_000; // longer texts are shown as they stand

function rendered(text: string): TrustedHTML | string {
  let html = cache.get(text);
  if (html === undefined) {
    html = DOMPurify.sanitize(marked.parse(text, { async: false }), { ...allowed } as never) as unknown as TrustedHTML;
    if (cache.size >= mostCached) cache.delete(cache.keys().next().value!);
    if (text.length < 20_000) cache.set(text, html);
  }
  return html;
}

function onClick(event: MouseEvent) {
  const button = (event.target as HTMLElement).closest<HTMLButtonElement>(".copy-code");
  if (!button) return;
  void copyText(button.closest(".code")!.querySelector("code")!.textContent ?? "").then((done) => {
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

export function Markdown({ text }: { text: string }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    element.current!.innerHTML = rendered(text) as string;
    showFormulas(element.current!);
  }, [text]);
  return <div class="markdown" ref={element} onClick={onClick} />;
}
