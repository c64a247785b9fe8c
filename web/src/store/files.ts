// What a file is, by its first bytes and its name, and how its text becomes part of a message: plain functions.
import type { Attachment } from "./types";

export type FileKind = { is: "image"; type: string } | { is: "pdf" } | { is: "text" } | { is: "refused"; why: string };

const startsWith = (head: Uint8Array, at: number, text: string) => [...text].every((c, i) => head[at + i] === c.charCodeAt(0));

// Media types that are taken; "" of others.
export function imageType(head: Uint8Array): string {
  if (startsWith(head, 0, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith(head, 0, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(head, 0, "GIF87a") || startsWith(head, 0, "GIF89a")) return "image/gif";
  if (startsWith(head, 0, "RIFF") && startsWith(head, 8, "WEBP")) return "image/webp";
  if (startsWith(head, 0, "BM") && head.length > 26 && head[14] >= 12 && head[15] === 0 && head[26] + head[28] > 0) return "image/bmp";
  return "";
}

const brands: [string, string][] = [["avif", "AVIF"], ["avis", "AVIF"], ["heic", "HEIC"], ["heix", "HEIC"], ["hevc", "HEIC"], ["mif1", "HEIC"], ["msf1", "HEIC"]];

// The name of an image's format that is not taken; "" of everything else.
function foreignImage(name: string, type: string, head: Uint8Array): string {
  if (/\.svgz?$/i.test(name) || type === "image/svg+xml") return "SVG";
  if (startsWith(head, 4, "ftyp")) {
    const brand = brands.find(([mark]) => startsWith(head, 8, mark));
    if (brand) return brand[1];
  }
  if (/\.hei[cf]$/i.test(name) || /^image\/hei[cf]/.test(type)) return "HEIC";
  if (startsWith(head, 0, "II*\0") || startsWith(head, 0, "MM\0*")) return "TIFF";
  return /^image\/([\w.+-]+)/.exec(type)?.[1].toUpperCase() ?? "";
}

export function kindOf(name: string, type: string, head: Uint8Array): FileKind {
  const image = imageType(head);
  if (image) return { is: "image", type: image };
  const foreign = foreignImage(name, type, head);
  if (foreign) return { is: "refused", why: `${name}: ${foreign} images are not taken. Save it as PNG or JPEG; WebP, GIF and BMP are taken, too.` };
  if (startsWith(head, 0, "%PDF-")) return { is: "pdf" };
  return { is: "text" };
}

// UTF-8, or UTF-16 with its mark; null of what is no text.
export function decodeText(bytes: Uint8Array): string | null {
  const mark = bytes.length > 1 ? (bytes[0] << 8) | bytes[1] : 0;
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text.replaceAll("\r\n", "\n");
  } catch {
    return null;
  }
}

export const sizeOf = (n: number) => (n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : n >= 1000 ? `${(n / 1000).toFixed(1)} kB` : `${n} bytes`);

// A fence longer than any in the text.
function fenced(text: string, name: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  const language = /\.(?!txt$)(\w{1,10})$/.exec(name)?.[1].toLowerCase() ?? "";
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

// The files' texts, each under its name, then what was typed.
export function messageText(content: string, attachments: Attachment[] = []): string {
  const files = attachments.filter((one) => one.kind === "text").map((one) => `File: ${one.name.replace(/[\r\n]+/g, " ")}\n${fenced(one.text, one.name)}`);
  return [...files, content].filter((part) => part !== "").join("\n\n");
}

// The side lengths of an image that is sent, at most mostSide each.
export const mostSide = 4096;
export const mostImageBytes = 8e6;
export function scaledSize(width: number, height: number): { width: number; height: number } {
  const factor = Math.min(1, mostSide / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * factor)), height: Math.max(1, Math.round(height * factor)) };
}
