// The conversations that hold all words of a query, in titles, messages or the files that go with them: plain functions.
import type { Conversation, MessageNode } from "./types";

export interface Found {
  conversation: Conversation;
  node: string; // the first message that holds a word; "" where only the title does
  words: [before: string, match: string, after: string] | null; // of that message
}

const around = 24; // characters

export const wordsOf = (query: string) => query.toLowerCase().split(/\s+/).filter((word) => word !== "");

function textsOf(node: MessageNode): string[] {
  const files = (node.attachments ?? []).flatMap((one) => (one.kind === "text" ? [one.name, one.text] : [one.name]));
  return [node.content, ...files, ...(node.calls ?? []).map((call) => `${call.name} ${call.arguments}`)];
}

function excerpt(text: string, at: number, length: number): Found["words"] {
  const isCut = at > around;
  const before = text.slice(Math.max(0, at - around), at).replace(/\s+/g, " ").replace(isCut ? /^\S*\s(?=.)/ : /^$/, ""); // whole words
  const after = text.slice(at + length, at + length + 2 * around).replace(/\s+/g, " ");
  return [(isCut ? "…" : "") + before, text.slice(at, at + length), after];
}

function findIn(conversation: Conversation, query: string): Found | null {
  const missing = new Set(wordsOf(query));
  const phrase = query.trim().toLowerCase();
  const mark = (text: string) => missing.forEach((word) => text.includes(word) && missing.delete(word));
  let found: Found = { conversation, node: "", words: null };
  let isWhole = false; // the excerpt shows the whole query
  mark(conversation.title.toLowerCase());
  for (const node of Object.values(conversation.nodes)) {
    for (const text of textsOf(node)) {
      const lower = text.toLowerCase();
      mark(lower);
      const at: number = isWhole ? -1 : lower.indexOf(phrase);
      isWhole ||= at >= 0;
      const word = at >= 0 || found.node ? undefined : wordsOf(query).find((one) => lower.includes(one));
      if (at >= 0) found = { conversation, node: node.id, words: excerpt(text, at, phrase.length) };
      else if (word) found = { conversation, node: node.id, words: excerpt(text, lower.indexOf(word), word.length) };
    }
    if (missing.size === 0 && isWhole) break;
  }
  return missing.size === 0 ? found : null;
}

// Those that are pinned first, in the order in which they stand.
export function inOrder(conversations: Conversation[]): Conversation[] {
  return [...conversations.filter((one) => one.isPinned), ...conversations.filter((one) => !one.isPinned)];
}

export function search(conversations: Conversation[], query: string): Found[] {
  return inOrder(conversations).flatMap((one) => findIn(one, query) ?? []);
}
