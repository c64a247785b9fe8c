// The text of a PDF, page by page. /ui/pdf.js, which the page loads with the first PDF.
import { getDocument } from "unpdf/pdfjs";

// Runs of text in the order of the file; a line ends where the file says so.
export async function textOfPdf(bytes: Uint8Array, mostCharacters: number): Promise<string> {
  const task = getDocument({ data: bytes, isEvalSupported: false, useSystemFonts: true, disableFontFace: true, verbosity: 0 } as never);
  const file = await task.promise;
  const pages: string[] = [];
  let n = 0;
  for (let i = 1; i <= file.numPages && n <= mostCharacters; i++) {
    const page = await file.getPage(i);
    const { items } = await page.getTextContent();
    const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("").trim();
    pages.push(text);
    n += text.length;
    page.cleanup();
  }
  await task.destroy();
  return pages.join("\n\n").trim();
}
