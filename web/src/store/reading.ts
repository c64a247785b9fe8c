// Texts that are read: how alike they are, how well they answer a query, or which labels they have.
import { signal } from "@preact/signals";
import { client, Failure } from "../api/client";
import type { ModelFacts } from "../api/types";
import { recall, remember } from "./persist";

export interface ReadRow {
  text: string;
  words: string; // a label; "" where there is a score alone
  score: number;
}

export type Reads = "likeness" | "ranks" | "labels" | "token labels";

export const reading = {
  query: signal(recall("reading.query", "")),
  texts: signal(recall("reading.texts", "")), // one a line
  rows: signal<ReadRow[]>([]),
  isBusy: signal(false),
  fault: signal(""),
};

export function readsOf(model: ModelFacts): Reads {
  if (model.labels.length === 0) return "likeness";
  if (model.labels_tokens) return "token labels";
  return model.ranks_pairs ? "ranks" : "labels";
}

const lines = () => reading.texts.value.split("\n").map((line) => line.trim()).filter((line) => line !== "");

type Scored = { score: number; label?: string; index?: number; word?: string; entity?: string };

async function rowsOf(reads: Reads, texts: string[]): Promise<ReadRow[]> {
  const query = reading.query.value;
  if (reads === "likeness") {
    const scores = await client.read<number[]>("/similarity", { inputs: { source_sentence: query, sentences: texts }, truncate: true });
    return texts.map((text, i) => ({ text, words: "", score: scores[i]! })).sort((a, b) => b.score - a.score);
  }
  if (reads === "ranks") {
    const ranked = await client.read<Scored[]>("/rerank", { query, texts, truncate: true });
    return ranked.map((one) => ({ text: texts[one.index!]!, words: "", score: one.score }));
  }
  const all = await client.read<Scored[][]>("/predict", { inputs: texts.map((text) => [text]), truncate: true });
  if (reads === "token labels") return all.flat().map((one) => ({ text: one.word!, words: one.entity!, score: one.score }));
  return texts.map((text, i) => ({ text, words: all[i]![0]!.label!, score: all[i]![0]!.score }));
}

export async function readAll(reads: Reads) {
  const texts = lines();
  if (texts.length === 0) return;
  remember("reading.query", reading.query.value);
  remember("reading.texts", reading.texts.value.slice(0, 100_000));
  reading.isBusy.value = true;
  reading.fault.value = "";
  try {
    reading.rows.value = await rowsOf(reads, texts);
  } catch (error) {
    reading.fault.value = error instanceof Failure ? error.message : String(error);
  }
  reading.isBusy.value = false;
}
