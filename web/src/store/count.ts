// How many tokens the message that is being written makes, with all before it: counted by the server, a while after the
// last change, where files or a long text make it worth asking.
import { effect, signal } from "@preact/signals";
import { client } from "../api/client";
import { attached } from "./attach";
import { messagesOf } from "./settings";
import { active, settings, shown, store } from "./store";
import type { MessageNode } from "./types";

const worthAsking = 2_000; // characters
const pauseMs = 500;

export const counted = signal<{ tokens: number; context: number } | null>(null);

let waiting = 0;
let newest = 0;

// Images are left out: what they take is the model's to say.
async function count(path: MessageNode[], content: string, mine: number) {
  const draft = { role: "user", content, attachments: attached.value } as MessageNode;
  const { system, model } = settings.value;
  const texts = [...path, draft].map((node) => ({ ...node, attachments: node.attachments?.filter((one) => one.kind === "text") }));
  try {
    const tokens = await client.promptTokens({ messages: messagesOf(texts, system), ...(model ? { model } : {}) });
    if (mine === newest) counted.value = { tokens: tokens.length, context: store.parameters.value!.model.n_ctx };
  } catch {
    if (mine === newest) counted.value = null; // sending it says why
  }
}

effect(() => {
  const content = store.draft.value;
  const isWorth = content.length > worthAsking || attached.value.some((one) => one.kind === "text");
  const path = shown.value;
  active.value;
  settings.value;
  const mine = ++newest;
  clearTimeout(waiting);
  if (!isWorth || !store.parameters.value?.model.has_chat_template) {
    counted.value = null;
    return;
  }
  waiting = window.setTimeout(() => void count(path, content, mine), pauseMs);
});

export function fitWords(tokens: number, context: number): string {
  const number = (n: number) => n.toLocaleString("en");
  if (tokens < context) return `${number(tokens)} tokens of a context of ${number(context)}`;
  return `${number(tokens)} tokens: ${Math.max(1, Math.floor((100 * context) / tokens))} % of it fits the context of ${number(context)}`;
}
