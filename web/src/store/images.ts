// Images: read and checked by decoding them, scaled down where they are large, and put into the request that is sent.
import type { RequestBody } from "../api/types";
import { mostImageBytes, mostSide, scaledSize, sizeOf } from "./files";
import { newId } from "./tree";
import type { Conversation, ImageFile } from "./types";

const thumbSide = 360;
const mark = "attachment:"; // of a request that is kept: the image's id stands for its data

function drawn(bitmap: ImageBitmap, width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  return canvas;
}

const blobOf = (canvas: HTMLCanvasElement, type: string, quality?: number) =>
  new Promise<Blob>((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no image"))), type, quality));

// As it is where it fits. Otherwise the sides shrink first, then the quality, then the sides again.
async function fitting(bitmap: ImageBitmap, data: Blob): Promise<{ data: Blob; width: number; height: number }> {
  let { width, height } = scaledSize(bitmap.width, bitmap.height);
  if (width === bitmap.width && height === bitmap.height && data.size <= mostImageBytes) return { data, width, height };
  const type = data.type === "image/jpeg" || data.type === "image/webp" ? data.type : "image/png";
  for (let forms = [type, "image/jpeg"]; ; width = Math.max(1, width >> 1), height = Math.max(1, height >> 1), forms = ["image/jpeg"]) {
    const canvas = drawn(bitmap, width, height);
    for (const form of forms) {
      const blob = await blobOf(canvas, form, 0.9);
      if (blob.size <= mostImageBytes) return { data: blob, width, height };
    }
  }
}

function thumbOf(bitmap: ImageBitmap): string {
  const factor = Math.min(1, thumbSide / Math.max(bitmap.width, bitmap.height));
  return drawn(bitmap, Math.max(1, Math.round(bitmap.width * factor)), Math.max(1, Math.round(bitmap.height * factor))).toDataURL("image/webp", 0.8);
}

// One line where it cannot be read.
export async function readImage(name: string, type: string, bytes: ArrayBuffer): Promise<ImageFile | string> {
  const whole = new Blob([bytes], { type });
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(whole);
  } catch {
    return `${name}: this image is damaged, or too large for the browser.`;
  }
  const { data, width, height } = await fitting(bitmap, whole);
  const why = bitmap.width > mostSide || bitmap.height > mostSide ? `over ${mostSide} pixels a side` : `over ${sizeOf(mostImageBytes)}`;
  const note = data === whole ? "" : `scaled down from ${bitmap.width} × ${bitmap.height}, ${sizeOf(whole.size)} (${why})`;
  const thumb = thumbOf(bitmap);
  bitmap.close();
  return { id: newId(), kind: "image", name, size: data.size, width, height, data, thumb, note };
}

export const dataUrlOf = (blob: Blob) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });

export function blobOfUrl(url: string): Blob | null {
  const match = /^data:(image\/(?:png|jpeg|webp|gif|bmp));base64,([A-Za-z0-9+/=]*)$/.exec(url);
  if (!match) return null;
  try {
    return new Blob([Uint8Array.from(atob(match[2]), (c) => c.charCodeAt(0))], { type: match[1] });
  } catch {
    return null;
  }
}

export const referenceTo = (image: ImageFile) => `${mark}${image.id}`;

interface Part {
  type: string;
  image_url?: { url: string };
}
const partsOf = (body: RequestBody): Part[] =>
  ((body.messages ?? []) as { content: unknown }[]).flatMap((message) => (Array.isArray(message.content) ? (message.content as Part[]) : []));

// The images of a request that is kept, in the order of the prompt: their ids.
export const imagesOf = (body: RequestBody): string[] =>
  partsOf(body).flatMap((part) => (part.image_url?.url.startsWith(mark) ? [part.image_url.url.slice(mark.length)] : []));

export const hasImages = (body: RequestBody) => partsOf(body).some((part) => part.image_url);

// The request as it is sent: the data of each image in place of its id.
export async function withImages(body: RequestBody, conversation: Conversation | null): Promise<RequestBody> {
  if (!hasImages(body)) return body;
  const images = new Map(Object.values(conversation?.nodes ?? {}).flatMap((node) => node.attachments ?? []).map((one) => [mark + one.id, one]));
  const whole = structuredClone(body);
  for (const part of partsOf(whole)) {
    const image = part.image_url && images.get(part.image_url.url);
    if (image?.kind === "image") part.image_url!.url = await dataUrlOf(image.data);
    else if (part.image_url?.url.startsWith(mark)) throw new Error("An image of this conversation is not kept here: begin with another message.");
  }
  return whole;
}
