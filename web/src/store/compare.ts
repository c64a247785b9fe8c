// One prompt under several settings, with one seed.
import { batch, signal } from "@preact/signals";
import { client } from "../api/client";
import type { Parameters } from "../api/types";
import { takeChunk } from "./answers";
import { tell } from "./actions";
import { recall, remember } from "./persist";
import { chatBody, newSeed, plainSettings, withPreset } from "./settings";
import { store } from "./store";
import type { MessageNode } from "./types";

export interface Column {
  name: string; // "greedy", a preset, or "own"
  numbers: Record<string, number>;
  answer: MessageNode | null;
}

export const compare = {
  prompt: signal(recall("compare.prompt", "")),
  seed: signal(recall("compare.seed", 1)),
  most: signal(120),
  columns: signal<Column[]>([
    { name: "greedy", numbers: { temperature: 0 }, answer: null },
    { name: "chat", numbers: { temperature: 0.7, top_p: 0.9 }, answer: null },
    { name: "creative", numbers: { temperature: 0.95, top_p: 0.95 }, answer: null },
  ]),
  isBusy: signal(false),
  tick: signal(0),
  fault: signal(""),
};

let control = new AbortController();

export function named(name: string, parameters: Parameters): Record<string, number> {
  if (name === "greedy") return { temperature: 0 };
  return withPreset(plainSettings, name, parameters).numbers;
}

export function setColumn(at: number, part: Partial<Column>) {
  compare.columns.value = compare.columns.value.map((column, i) => (i === at ? { ...column, ...part } : column));
}

function fresh(column: Column, seed: number): MessageNode {
  const settings = { ...plainSettings, numbers: column.numbers, seed, maxTokens: compare.most.value };
  const question: MessageNode = { id: "q", parent: "", role: "user", content: compare.prompt.value, children: [], chosen: 0, at: 0, state: "done" };
  const hasTemplate = store.parameters.value?.model.has_chat_template ?? true;
  const { messages, stream_options, ...rest } = chatBody([question], settings);
  const body = hasTemplate ? { ...rest, messages, stream_options } : { ...rest, prompt: compare.prompt.value, logprobs: 0, stream_options };
  return { ...question, id: `${column.name}-${seed}`, role: "assistant", content: "", tokens: [], state: "streaming", settings, body,
    path: hasTemplate ? "/v1/chat/completions" : "/v1/completions" };
}

async function run(node: MessageNode) {
  const began = performance.now();
  try {
    for await (const chunk of client.stream(node.path!, node.body!, control.signal)) {
      takeChunk(node, chunk, performance.now() - began, []);
      draw();
    }
    node.state = "done";
  } catch (failure) {
    node.state = control.signal.aborted ? "stopped" : "failed";
    if (!control.signal.aborted) node.error = tell(failure);
  }
  draw();
}

let isDrawing = false;
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    compare.tick.value++;
  });
}

export async function runAll() {
  if (compare.prompt.value.trim() === "" || compare.isBusy.value) return;
  remember("compare.prompt", compare.prompt.value);
  remember("compare.seed", compare.seed.value);
  control = new AbortController();
  const seed = compare.seed.value;
  batch(() => {
    compare.isBusy.value = true;
    compare.columns.value = compare.columns.value.map((column) => ({ ...column, answer: fresh(column, seed) }));
  });
  await Promise.all(compare.columns.value.map((column) => run(column.answer!)));
  compare.isBusy.value = false;
  store.spoken.value = "All answers are there.";
}

export const stopAll = () => control.abort();
export const anotherSeed = () => (compare.seed.value = newSeed() % 100_000);

// The first place at which not all of them have the same token; Infinity where they never part.
export function partsAt(columns: Column[]): number {
  const lists = columns.map((column) => column.answer?.tokens ?? []).filter((list) => list.length > 0);
  if (lists.length < 2) return Infinity;
  const shortest = Math.min(...lists.map((list) => list.length));
  for (let i = 0; i < shortest; i++) if (lists.some((list) => list[i].s !== lists[0][i].s)) return i;
  return lists.some((list) => list.length !== shortest) ? shortest : Infinity;
}
