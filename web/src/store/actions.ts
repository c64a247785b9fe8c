// What people do in a chat.
import { batch } from "@preact/signals";
import { client, Failure } from "../api/client";
import type { Explanation } from "../api/types";
import { takeChunk } from "./answers";
import { attached, imageFault, isReading } from "./attach";
import { withImages } from "./images";
import { keep } from "./library";
import { chatBody, faultOf } from "./settings";
import { active, settings, store, tickOf } from "./store";
import { addNode, newConversation, pathTo, titleOf } from "./tree";
import type { Conversation, MessageNode } from "./types";

const inWork = new Map<string, AbortController>();

export const isBusy = () => shownStream() !== null;
export function shownStream(): MessageNode | null {
  store.revision.value;
  const nodes = active.value?.nodes ?? {};
  for (const id of inWork.keys()) if (nodes[id]) return nodes[id];
  return null;
}

export function tell(failure: unknown): string {
  const words = failure instanceof Error ? failure.message : String(failure);
  if (failure instanceof Failure && failure.needsKey) {
    store.connection.value = "key";
    store.connectionFault.value = words;
  }
  return words;
}

// At most once a frame, however many tokens come.
const waiting = new Set<string>();
export function grow(node: MessageNode) {
  if (waiting.size === 0) {
    requestAnimationFrame(() => {
      const ids = [...waiting];
      waiting.clear();
      batch(() => ids.forEach((id) => tickOf(id).value++));
    });
  }
  waiting.add(node.id);
}

export function setExplained(node: string, tokens: Explanation[], state: "asking" | "done" | "failed", note = "") {
  store.explained.value = { ...store.explained.value, [node]: { tokens, state, note } };
}

// Streams the node's own request into it.
export async function answer(conversation: Conversation, node: MessageNode) {
  const control = new AbortController();
  inWork.set(node.id, control);
  store.revision.value++;
  const began = performance.now();
  const explained: Explanation[] = [];
  try {
    for await (const chunk of client.stream(node.path!, await withImages(node.body!, conversation), control.signal)) {
      takeChunk(node, chunk, performance.now() - began, explained);
      grow(node);
    }
    node.state = "done";
  } catch (failure) {
    node.state = control.signal.aborted ? "stopped" : "failed";
    if (!control.signal.aborted) node.error = tell(failure);
  }
  node.tookMs = performance.now() - began;
  inWork.delete(node.id);
  if (explained.length > 0) setExplained(node.id, explained, "done");
  store.spoken.value = node.state === "failed" ? (node.error ?? "") : node.state === "stopped" ? "Stopped." : "The answer is complete.";
  store.revision.value++;
  grow(node);
  keep(conversation);
}

function ask(conversation: Conversation, parent: string) {
  const chosen = conversation.settings;
  const body = chatBody(pathTo(conversation, parent), chosen, store.parameters.value?.model);
  const node = addNode(conversation, parent, {
    role: "assistant", state: "streaming", path: "/v1/chat/completions", body, settings: structuredClone(chosen), tokens: [],
  });
  void answer(conversation, node);
}

export function activeOrNew(): Conversation {
  if (active.value) return active.value;
  const conversation = newConversation(store.settings.value);
  store.conversations.value = [conversation, ...store.conversations.value];
  store.activeId.value = conversation.id;
  return conversation;
}

// False where nothing was sent: what was typed stays.
export function send(text: string): boolean {
  const files = attached.value;
  const reading = isReading.value && `${isReading.value} is still being read: send it in a moment.`;
  const fault = reading || (files.some((one) => one.kind === "image") && imageFault.value) || faultOf(settings.value);
  if (fault || (text.trim() === "" && files.length === 0) || isBusy()) {
    store.notice.value = fault;
    return false;
  }
  store.notice.value = "";
  const conversation = activeOrNew();
  const path = pathTo(conversation, lastShown(conversation));
  if (path.length === 0) conversation.title = titleOf(text.trim() ? text : files[0].name);
  const node = addNode(conversation, path.at(-1)?.id ?? "", { role: "user", content: text, ...(files.length > 0 ? { attachments: files } : {}) });
  attached.value = [];
  ask(conversation, node.id);
  keep(conversation);
  return true;
}

function lastShown(conversation: Conversation): string {
  let id = conversation.roots[conversation.chosen] ?? "";
  for (let node = conversation.nodes[id]; node?.children.length; node = conversation.nodes[id]) id = node.children[node.chosen];
  return id;
}

export function stop() {
  const conversation = active.value;
  for (const [id, control] of inWork) if (conversation?.nodes[id]) control.abort();
}

// Another answer to the same message, with the settings as they are now.
export function regenerate(node: MessageNode) {
  const conversation = active.value;
  const fault = faultOf(settings.value);
  store.notice.value = fault;
  if (!conversation || fault || isBusy()) return;
  ask(conversation, node.parent);
}

// The edited message begins a branch beside the old one.
export function edit(node: MessageNode, text: string) {
  const conversation = active.value;
  if (!conversation || isBusy()) return;
  const added = addNode(conversation, node.parent, { role: node.role, content: text, callId: node.callId, attachments: node.attachments });
  if (node.role === "user") ask(conversation, added.id);
  else keep(conversation);
  store.revision.value++;
}

// What a tool gave back, and the answer to it.
export function giveResult(node: MessageNode, callId: string, text: string) {
  const conversation = active.value;
  if (!conversation || isBusy()) return;
  let parent = node.id;
  while (conversation.nodes[parent].children.length > 0) {
    const next = conversation.nodes[conversation.nodes[parent].children.at(-1)!];
    if (next.role !== "tool") break;
    parent = next.id;
  }
  const added = addNode(conversation, parent, { role: "tool", content: text, callId });
  const given = pathTo(conversation, added.id).filter((one) => one.role === "tool").map((one) => one.callId);
  if ((node.calls ?? []).every((call) => given.includes(call.id))) ask(conversation, added.id);
  store.revision.value++;
  keep(conversation);
}
