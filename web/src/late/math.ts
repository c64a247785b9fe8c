// Formulas as MathML, built as elements and never as text. /ui/math.js, which the page loads with the first formula.
import temml from "temml";

const longest = 5_000; // characters

// What the page asks of an untrusted text: no links, no pictures, no classes or styles of its own, bounded sizes and macros.
const options = { throwOnError: true, trust: false, maxSize: [40, 600] as [number, number], maxExpand: 300 };

interface Part {
  attributes?: Record<string, string>;
  style?: Record<string, string>;
  children?: Part[];
  toNode(): Element;
}

// The page's policy refuses styles that are attributes; as properties they are allowed.
function setStyles(part: Part) {
  const text = part.attributes?.style ?? "";
  delete part.attributes?.style;
  for (const [, name, value] of text.matchAll(/([\w-]+):\s*([^;]+)/g)) {
    part.style![name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())] = value.trim();
  }
  part.children?.forEach(setStyles);
}

// null where it is no formula that can be read.
export function mathOf(tex: string, isDisplay: boolean): Element | null {
  if (tex.length > longest) return null;
  try {
    const math: Part = temml.__renderToMathMLTree(tex, { ...options, displayMode: isDisplay, wrap: isDisplay ? "none" : "tex" });
    setStyles(math);
    const node = math.toNode();
    return node.tagName === "math" ? node : null;
  } catch {
    return null;
  }
}
