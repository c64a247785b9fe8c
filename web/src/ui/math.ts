// Shows formulas: what builds them is loaded with the first one, and everything that it builds is sanitized.
import DOMPurify from "dompurify";
import { formulaOf } from "./math_marks";

type MathFile = typeof import("../late/math");

const allowed = {
  ALLOWED_TAGS: ["math", "menclose", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts", "mroot",
    "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "none", "#text"],
  ALLOWED_ATTR: ["accent", "accentunder", "class", "columnalign", "columnlines", "columnspacing", "columnspan", "depth", "dir", "display",
    "displaystyle", "fence", "form", "height", "largeop", "linethickness", "lspace", "mathbackground", "mathcolor", "mathvariant", "maxsize",
    "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rowspan", "rspace", "scriptlevel", "separator", "stretchy", "style",
    "symmetric", "voffset", "width"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  IN_PLACE: true,
} as const;

let file: MathFile | null = null;
let loading: Promise<unknown> | null = null;

const known = new Map<string, Element | null>(); // of each source
const mostKnown = 500;

function elementOf(raw: string): Element | null {
  let element = known.get(raw);
  if (element === undefined) {
    const { tex, isDisplay } = formulaOf(raw);
    element = file!.mathOf(tex, isDisplay);
    if (element) DOMPurify.sanitize(element, { ...allowed } as never);
    if (known.size >= mostKnown) known.delete(known.keys().next().value!);
    known.set(raw, element);
  }
  return element && (element.cloneNode(true) as Element);
}

// Sources become formulas; one that cannot be read stays source.
export function showFormulas(root: HTMLElement) {
  const places = root.querySelectorAll<HTMLElement>(".math-source");
  if (places.length === 0) return;
  if (!file) {
    const address = "/ui/math.js";
    loading ??= import(address).then((loaded: MathFile) => (file = loaded), () => (loading = null));
    void loading.then(() => file && root.isConnected && showFormulas(root));
    return;
  }
  for (const place of places) {
    const raw = place.textContent ?? "";
    const element = elementOf(raw);
    if (!element) continue;
    place.className = formulaOf(raw).isDisplay ? "math is-display" : "math";
    place.replaceChildren(element);
  }
  for (const place of root.querySelectorAll<HTMLElement>(".math.is-display")) if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
}
