// The files that go with the message that is being written.
import { computed, signal } from "@preact/signals";
import { decodeText, kindOf, sizeOf } from "./files";
import { readImage } from "./images";
import { shown, store } from "./store";
import { newId } from "./tree";
import type { Attachment, TextFile } from "./types";

const mostText = 4e6; // bytes
const mostPdf = 64e6;
const mostImage = 128e6;

export const attached = signal<Attachment[]>([]);
export const isReading = signal("");

// Why no image can be sent; "" where one can.
export const imageFault = computed(() => {
  const model = store.parameters.value?.model;
  if (!model) return "The server has not told yet whether its model takes images.";
  return model.images ? "" : `${model.id} takes no images: it reads text alone.`;
});

const serverTakes = 16 * 2 ** 20; // bytes of a request, where it was not started with another --max-body-mb

// Of all images that the next request holds, in base64.
export const bodyWarning = computed(() => {
  const all = [...shown.value.flatMap((node) => node.attachments ?? []), ...attached.value];
  const bytes = all.reduce((sum, one) => sum + (one.kind === "image" ? (one.size * 4) / 3 : 0), 0);
  return bytes > serverTakes ? `The images make ${sizeOf(bytes)}: a server takes ${sizeOf(serverTakes)}, unless --max-body-mb says more` : "";
});

const tooLarge = (file: File, most: number, what: string) => (file.size > most ? `${file.name} has ${sizeOf(file.size)}: ${what} of at most ${sizeOf(most)} are taken.` : "");

function asText(file: File, text: string): TextFile | string {
  const size = new Blob([text]).size;
  if (size > mostText) return `${file.name} holds ${sizeOf(size)} of text: at most ${sizeOf(mostText)} are taken.`;
  return { id: newId(), kind: "text", name: file.name, size: file.size, text };
}

async function readPdf(file: File): Promise<TextFile | string> {
  const fault = tooLarge(file, mostPdf, "PDFs");
  if (fault) return fault;
  let text: string;
  try {
    const address = "/ui/pdf.js";
    const { textOfPdf } = (await import(address)) as typeof import("../late/pdf");
    text = await textOfPdf(new Uint8Array(await file.arrayBuffer()), mostText);
  } catch (error) {
    const isLocked = (error as Error).name === "PasswordException";
    return isLocked ? `${file.name} is locked by a password.` : `${file.name} cannot be read as a PDF: ${(error as Error).message}`;
  }
  return text ? asText(file, text) : `${file.name} holds no text, only pictures of it: attach its pages as images.`;
}

async function readText(file: File): Promise<TextFile | string> {
  const fault = tooLarge(file, mostText, "texts");
  if (fault) return fault;
  const text = decodeText(new Uint8Array(await file.arrayBuffer()));
  if (text === null) return `${file.name} is no text in UTF-8: texts, PDFs and images are taken.`;
  return text.trim() === "" ? `${file.name} is empty.` : asText(file, text);
}

async function read(file: File): Promise<Attachment | string> {
  try {
    const kind = kindOf(file.name, file.type, new Uint8Array(await file.slice(0, 64).arrayBuffer()));
    if (kind.is === "refused") return kind.why;
    if (kind.is === "pdf") return await readPdf(file);
    if (kind.is === "text") return await readText(file);
    return imageFault.value || tooLarge(file, mostImage, "images") || (await readImage(file.name, kind.type, await file.arrayBuffer()));
  } catch {
    return `${file.name} cannot be read: is it a folder, or was it moved?`;
  }
}

export async function attach(files: File[]) {
  const faults = new Set<string>();
  store.notice.value = "";
  for (const file of files) {
    isReading.value = file.name;
    const one = await read(file);
    if (typeof one === "string") faults.add(one);
    else attached.value = [...attached.value, one];
  }
  isReading.value = "";
  store.notice.value = [...faults].join("\n");
  if (attached.value.length > 0) store.spoken.value = `Attached: ${attached.value.map((one) => one.name).join(", ")}.`;
}

export function detach(id: string) {
  attached.value = attached.value.filter((one) => one.id !== id);
}
